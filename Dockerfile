# The base by version and by digest, of the index for all architectures: "Update the base" in docs/contributors/image.md.
# The bundle is the same for all architectures, so it is made on that of the builder.
FROM --platform=$BUILDPLATFORM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2 AS build
WORKDIR /app
# The manifests come first, so that a change of the source alone doesn't install everything again.
COPY package.json package-lock.json .npmrc ./
COPY config/node config/node
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY config/rolldown.config.ts config/
COPY src src
# The image has no `env` for the first line of main.js.
RUN node node_modules/rolldown/bin/cli.mjs -c config/rolldown.config.ts --configLoader native --logLevel warn \
 && sed -i '1s|^#!.*|#!/usr/local/bin/node|' dist/bundle/main.js \
 && chmod 755 dist/bundle/main.js

# All that the image has of the base: node and its libraries, without shell, npm and package manager.
FROM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2 AS system
# true and false: what a process that hangs at its end replaces itself by. /etc/hosts is read only with nsswitch.conf.
# status.d tells scanners which Debian packages the files are from.
RUN set -eu; \
    mkdir -p /system/etc /system/usr/share/doc /system/var/lib/dpkg/status.d /system/usr/local/bin; \
    install -d -m 1777 /system/tmp; \
    files="/bin/true /bin/false $(ldd /usr/local/bin/node | grep -o '/[^ ]*')"; \
    cp --parents -L /usr/local/bin/node /etc/os-release $files /system; \
    grep -E '^(root|node):' /etc/passwd > /system/etc/passwd; \
    grep -E '^(root|node):' /etc/group > /system/etc/group; \
    echo 'hosts: files dns' > /system/etc/nsswitch.conf; \
    for file in $files; do dpkg-query -S "$file" "$(readlink -f "$file")" 2>/dev/null || true; done \
      | cut -d : -f 1 | sort -u | while read -r package; do \
      dpkg-query -s "$package" > "/system/var/lib/dpkg/status.d/$package"; \
      cp --parents -rL "/usr/share/doc/$package/copyright" /system; \
    done; \
    ln -s /app/dist/bundle/main.js /system/usr/local/bin/textgate; \
    # The data holds the admin token and the keys: only the gateway's user may read it.
    install -d -o node -g node -m 700 /system/app/data /system/home/node

FROM scratch
LABEL org.opencontainers.image.title="textgate" \
      org.opencontainers.image.description="A text-only LLM gateway: Chat Completions and Responses, sync and streamed, in front of any provider." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.base.name="docker.io/library/node:26.10.0-bookworm-slim" \
      org.opencontainers.image.base.digest="sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2"
ENV PATH=/usr/local/bin:/usr/bin:/bin
ENV NODE_ENV=production
# A container's loopback can't be reached from outside, so the public listener takes every address.
# The admin listener keeps its default, 127.0.0.1:8081: use it from inside, with `docker exec`.
ENV TEXTGATE_HOST=0.0.0.0
# In MiB; V8 would let the halves of its young generation grow to 32. docs/operators/processes.md has what that costs and saves.
ENV NODE_OPTIONS=--max-semi-space-size=8
COPY --from=system /system /
WORKDIR /app
COPY LICENSE README.md package.json ./
COPY config/textgate.example.yaml config/
# The pages that the admin listener shows at /docs.
COPY docs docs
COPY --from=build /app/dist/bundle dist/bundle
# By number, so that Kubernetes can see that it is not root.
USER 1000
# After the directory is made, because a new volume takes its owner and mode from it.
VOLUME /app/data
EXPOSE 8080
# Whether it is alive, rather than ready: a restart does not help against a provider or a database that is away.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["textgate", "health"]
# No shell between Docker and node: SIGTERM reaches the gateway, which then finishes the answers in progress.
ENTRYPOINT ["textgate"]
CMD ["serve"]
