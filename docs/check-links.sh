#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fails when a relative link in a Markdown file leads to a file, or a heading, that is not there. Needs no network.
set -eu
cd "$(dirname "$0")/.."

# What a heading is linked by: lower case, only letters, digits, hyphens and underscores, spaces become hyphens.
anchors() {
    awk '/^```/ { code = !code; next } !code && /^#+ / { sub(/^#+ +/, ""); print }' "$1" |
        tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:] _-]//g; s/ /-/g'
}

# Every link target outside of code, one a line.
targets() {
    awk '/^```/ { code = !code; next } !code { gsub(/`[^`]*`/, "``"); print }' "$1" |
        grep -o '](\([^()]*\))' | sed 's/^](//; s/)$//; s/ .*//' || true
}

wrong=0
count=0
files=$(find . -name '*.md' -not -path './target/*' -not -path '*/target/*' -not -path './.git/*' -not -path './out/*' | sort)
for file in $files; do
    for target in $(targets "$file"); do
        case $target in
        http://* | https://* | mailto:*) continue ;;
        esac
        count=$((count + 1))
        path=${target%%#*}
        case $target in
        *#*) anchor=${target#*#} ;;
        *) anchor= ;;
        esac
        if [ -n "$path" ]; then
            path=$(dirname "$file")/$path
        else
            path=$file
        fi
        if [ ! -e "$path" ]; then
            echo "$file: $target: no such file" >&2
            wrong=$((wrong + 1))
        elif [ -n "$anchor" ] && ! anchors "$path" | grep -qx -e "$anchor"; then
            echo "$file: $target: no such heading" >&2
            wrong=$((wrong + 1))
        fi
    done
done

echo "links: $count checked, $wrong wrong"
[ "$wrong" -eq 0 ]
