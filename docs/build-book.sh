#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# docs/build-book.sh MDBOOK FOLDER: makes the book. Fails on a chapter that SUMMARY.md does not name, on a warning of
# mdBook, and on a link between pages, or to a picture, that leads nowhere.
set -eu
export LC_ALL=C
mdbook=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2"
book=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
root=$(pwd)

for chapter in $(cd docs && find . -name '*.md' -not -name SUMMARY.md | sed 's|^\./||' | sort); do
    grep -qF "]($chapter)" docs/SUMMARY.md || { echo "docs/$chapter: SUMMARY.md does not name it" >&2 && exit 1; }
done

log=$("$mdbook" build docs --dest-dir "$book" 2>&1) || { echo "$log" >&2 && exit 1; }
if echo "$log" | grep -E 'WARN|ERROR' >&2; then exit 1; fi

# Files of the repository that chapters link to come along; mdBook takes Markdown for chapters.
cd "$book"
wrong=0
for page in $(find . -name '*.html' -not -name toc.html | sed 's|^\./||' | sort); do
    case $page in */*) up=../../ ;; *) up=../ ;; esac
    for link in $(grep -o "href=\"$up[^\"#]*" "$page" | sed "s|^href=\"$up||" | sort -u); do
        file=$link
        [ -e "$root/$file" ] || file=${link%.html}.md
        [ -e "$root/$file" ] || continue
        mkdir -p "$(dirname "$file")" && cp -R "$root/$file" "$(dirname "$file")"
        sed -i "s|href=\"$up$link\([\"#]\)|href=\"${up#../}$file\1|g" "$page"
    done
    for link in $(grep -oE '(href|src)="[^":]*"' "$page" | sed 's/^[a-z]*="//; s/"$//; s/#.*//' | sort -u); do
        case $link in /* | *'${'*) continue ;; esac
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link: no such file" >&2 && wrong=1; }
    done
done
[ "$wrong" = 0 ] && echo "book: $(find . -name '*.html' | wc -l) pages in $book"
