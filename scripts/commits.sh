#!/bin/sh
# Checks messages of commits:  scripts/commits.sh [RANGE]     default: those made since the check is there
#
# A subject has 72 characters at most, since tools cut it there; a body says why, after an empty line.
set -eu
cd "$(dirname "$0")/.."
git() { command git -c safe.directory='*' "$@"; } # the tree may be somebody else's, as in a container
if ! git rev-parse --quiet --verify HEAD >/dev/null; then
    echo "commits: no history here, nothing checked"
    exit 0
fi
[ $# -gt 0 ] || set -- --since=2026-11-24T00:00:00Z HEAD
bad=0
for commit in $(git rev-list --no-merges "$@"); do
    subject=$(git log -1 --format=%s "$commit")
    if [ "$(printf %s "$subject" | wc -m)" -gt 72 ]; then
        echo "$commit: the subject is longer than 72 characters: $subject"
        bad=1
    elif [ -z "$(git log -1 --format=%b "$commit")" ]; then
        echo "$commit: no body that says why: $subject"
        bad=1
    fi
done
exit $bad
