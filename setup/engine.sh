#!/bin/sh
# Make sure that a Docker engine answers. As root on Debian or Ubuntu: install and start one; otherwise say what to do.
# `engine.sh tools` also installs the foreign tools that the tests check our files with.
set -eu
cd "$(dirname "$0")/.."
log=/var/log/piste-dockerd.log
pid_file=/var/run/docker.pid

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
lacks() { ! command -v "$1" >/dev/null; }

missing=""
if lacks dockerd && { [ "${1:-}" = tools ] || ! answers; }; then missing="docker.io iptables"; fi
if [ "${1:-}" = tools ]; then
    for tool in docker-registry age openssl jq; do if lacks "$tool"; then missing="$missing $tool"; fi; done
fi
# shellcheck disable=SC2086
if [ -n "$missing" ]; then setup/packages.sh $missing; fi
if [ "${1:-}" = tools ] && lacks runsc; then
    setup/packages.sh runsc || echo "runsc is not to be had here: the gVisor tests will be skipped" >&2
fi
if answers; then exit 0; fi
if [ -n "${DOCKER_HOST:-}" ]; then
    echo "no Docker engine answers at DOCKER_HOST=$DOCKER_HOST. Start it, or unset DOCKER_HOST, then run this again." >&2
    exit 1
fi
if [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; then
    echo "you may not use the Docker engine. Run this as root, or join its group (sudo usermod -aG docker \$USER), log in anew," \
        "then run this again." >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "no Docker engine answers. Start it (sudo systemctl start docker), then run this again, or run this as root." >&2
    exit 1
fi

runs_already() { [ "$(cat "/proc/$(cat "$pid_file" 2>/dev/null)/comm" 2>/dev/null)" = dockerd ]; }
start_dockerd() {
    if ! mountpoint -q /sys/fs/cgroup/memory && [ ! -f /sys/fs/cgroup/cgroup.controllers ]; then
        if lacks cgroupfs-mount; then setup/packages.sh cgroupfs-mount; fi
        cgroupfs-mount
    fi
    rm -f "$pid_file" # of an engine that is no more: its number may be another process's by now
    nohup setsid dockerd >"$log" 2>&1 </dev/null &
    started=$!
    echo "starting dockerd, which goes on running; to stop it: kill \$(cat $pid_file)" >&2
}
started=""
if [ -d /run/systemd/system ] && systemctl start docker; then
    log="shown by journalctl -u docker"
elif ! runs_already; then
    start_dockerd
fi
tries=0
until answers; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ] || { [ -n "$started" ] && ! kill -0 "$started" 2>/dev/null; }; then
        if [ -f "$log" ]; then tail -n 20 "$log" >&2; fi
        echo "dockerd did not answer within 60 s, or has ended; its log is $log" >&2
        exit 1
    fi
    sleep 0.5
done
