# The build needs no database: the queries' types are in .sqlx.
FROM rust:1.95-bookworm AS build
WORKDIR /src
ENV SQLX_OFFLINE=true CARGO_TARGET_DIR=/target
COPY . .
# The caches outlive a change of the sources, so the binary is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/target \
    cargo build --release --locked --bin toolhook \
    && cp /target/release/toolhook /usr/local/bin/toolhook

FROM debian:bookworm-slim
# A number, so that orchestrators can see that it is not root. The service writes no files: it needs no home.
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin toolhook
COPY --from=build /usr/local/bin/toolhook /usr/local/bin/toolhook
USER 10001:10001
ENV TOOLHOOK_LISTEN=0.0.0.0:8080
EXPOSE 8080
# Ready, not merely alive: /readyz answers 200 once the schema is there and Postgres is reachable. By bash alone, as the image has no curl.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${TOOLHOOK_LISTEN##*:} && printf 'GET /readyz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["toolhook"]
CMD ["serve"]
