#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# docs/options.sh PROGRAM: prints the page of all options, which is what --help says of each command.
set -eu
export COLUMNS=100
program=$1

page() {
    help=$("$program" "$@" --help)
    printf '\n## readpath%s\n\n```text\n%s\n```\n' "${*:+ $*}" "$(echo "$help" | sed 's/ *$//')"
    for below in $(echo "$help" | awk '/^Commands:/ { list = 1; next } /^$/ { list = 0 } list && /^  [a-z]/ { print $1 }'); do
        [ "$below" = help ] || page "$@" "$below"
    done
}

printf '%s\n# All options\n\n%s\n' '<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->' \
    'What `--help` says of each command. [Commands](commands.md) says what they are for.'
page
