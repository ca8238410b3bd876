/** A member's position in a roster. */
export interface Position<Member> {
  readonly member: Member;
}

interface Node<Member> extends Position<Member> {
  before: Node<Member> | null;
  after: Node<Member> | null;
  isIn: boolean;
}

/**
 * Members in the order of their arrival, which come and go with every request. A `Map` or a `Set` would hold them, and all
 * that they refer to, far longer: V8 links each table that one of them has outgrown to the next, so an old table keeps
 * all later members alive until the next full collection, of which there are then many.
 */
export class Roster<Member> {
  #first: Node<Member> | null = null;
  #last: Node<Member> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The member that has been here longest. */
  get first(): Position<Member> | null {
    return this.#first;
  }

  /** Adds a member behind all others. */
  add(member: Member): Position<Member> {
    const node: Node<Member> = { member, before: this.#last, after: null, isIn: true };
    if (this.#last === null) this.#first = node;
    else this.#last.after = node;
    this.#last = node;
    this.#size++;
    return node;
  }

  /** Removes the member at a position of this roster; returns whether it was there. */
  remove(position: Position<Member>): boolean {
    const node = position as Node<Member>;
    if (!node.isIn) return false;
    if (node.before === null) this.#first = node.after;
    else node.before.after = node.after;
    if (node.after === null) this.#last = node.before;
    else node.after.before = node.before;
    // A node that is out must refer to none that are in, for the reason above.
    node.before = null;
    node.after = null;
    node.isIn = false;
    this.#size--;
    return true;
  }

  /** The position of the member that came after the one at a position of this roster; `null` after the last one. */
  after(position: Position<Member>): Position<Member> | null {
    return (position as Node<Member>).after;
  }

  /** All members, as they are now. */
  all(): Member[] {
    const members: Member[] = [];
    for (let node = this.#first; node !== null; node = node.after) members.push(node.member);
    return members;
  }
}
