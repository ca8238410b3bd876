# The compiler and the other development tools stay in this stage.
FROM node:26-bookworm-slim AS build
WORKDIR /app
# The manifests come first, so that a change of the source alone doesn't install everything again.
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json ./
COPY config/tsconfig.build.json config/
COPY src src
# The image's `textgate` command runs main.js itself, and tsc doesn't write executable files.
RUN npx tsc -p config/tsconfig.build.json && chmod +x dist/main.js

# A stage of its own, so that the dependencies' layer stays the same until the lockfile changes.
FROM node:26-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:26-bookworm-slim
ENV NODE_ENV=production
# A container's loopback can't be reached from outside, so the public listener takes every address.
# The admin listener keeps its default, 127.0.0.1:8081: use it from inside, with `docker exec`.
ENV TEXTGATE_HOST=0.0.0.0
# In MiB; V8 would let the halves of its young generation grow to 32. docs/operators/processes.md has what that costs and saves.
ENV NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
# The data holds the admin token and the keys: only the gateway's user may read it.
RUN install -d -o node -g node -m 700 data && ln -s /app/dist/main.js /usr/local/bin/textgate
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY --from=build /app/dist dist
# By number, so that Kubernetes can see that it is not root.
USER 1000
# After the directory is made, because a new volume takes its owner and mode from it.
VOLUME /app/data
EXPOSE 8080
# Whether it is alive, rather than ready: a restart does not help against a provider or a database that is away.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["textgate", "health"]
# No wrapper between Docker and node: SIGTERM reaches the gateway, which then finishes the answers in progress.
ENTRYPOINT []
CMD ["node", "dist/main.js", "serve"]
