"""CHECK.md and check.sh: how to check a bundle without piste. Part of the bundle's format."""

from __future__ import annotations

CHECK_TEXT = """\
# How to check this bundle

It is the public evidence of certified runs on a sealed exam. Nothing in it asks for your trust but
the keys in `keys/`: compare their ids (the SHA-256 of the key's DER form, which begins each file's
name) with what the organizer announced before the first run.

With piste, offline:

    piste verify .

Without piste, with `sha256sum`, `openssl` 3, `jq` and `base64` alone:

    sh check.sh

| what | where |
| --- | --- |
| every statement ever made, in order | `log/entries.jsonl`: one DSSE envelope a line, a leaf each |
| the tree over them, signed | `log/checkpoint`: a C2SP signed note over the RFC 6962 root |
| what was sealed, before the first run | `editions/*/seal.json` and the files beside it |
| what ran, and what came out | `runs/*/`: record, predictions, cards, sums and signatures |
| what was revealed after the end | `editions/*/revealed/`, once the edition is revealed |

One statement by hand, here the first:

    head -n 1 log/entries.jsonl | jq -r .payload | base64 -d | jq .

All runs that count, by edition and team (a run counts when it started and was not voided):

    jq -r '.payload | @base64d | fromjson | select(.kind == "run-started" or .kind == "run-voided")
           | [.kind, .edition, .team, .run_id] | @tsv' log/entries.jsonl

Keep `log/checkpoint`. The next bundle of the same log must extend it:

    piste verify NEXT --checkpoint log/checkpoint

What no signature proves: the operator holds host, engine and clock. The signatures bind the
statements to the keys and to each other; the commitments bind the exam to a time before the runs.
"""

CHECK_SCRIPT = r"""#!/bin/sh
# Check this bundle with sha256sum, openssl, jq and base64 alone. The numbers are those of
# `piste verify`. The first thing that does not hold ends the script with status 1.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

holds() { printf '%3s  holds  %s\n' "$1" "$2"; }
false_claim() { printf '%3s  FALSE  %s\n' "$1" "$2"; exit 1; }
digest() { sha256sum < "$1" | cut -d ' ' -f 1; }

# verify KEY SIGNATURE MESSAGE: Ed25519 for log keys, ECDSA P-256 for all others
verify() {
    case $1 in
    keys/log-*)
        openssl pkeyutl -verify -pubin -inkey "$1" -rawin -in "$3" -sigfile "$2" ;;
    *) openssl dgst -sha256 -verify "$1" -signature "$2" "$3" ;;
    esac > /dev/null 2>&1
}

# open_envelope FILE: payload, signed bytes and signature of a DSSE envelope
open_envelope() {
    jq -rj .payload "$1" | base64 -d > "$work/payload"
    type=$(jq -rj .payloadType "$1")
    {
        printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c < "$work/payload")"
        cat "$work/payload"
    } > "$work/pae"
    jq -rj '.signatures[0].sig' "$1" | base64 -d > "$work/sig"
}

# check_sums FOLDER KEY NUMBER: every public file, and the signature over their list
check_sums() {
    (cd "$1" && sha256sum -c --strict --quiet SHA256SUMS) || false_claim 18 "$1"
    base64 -d < "$1/SHA256SUMS.sig" > "$work/sig"
    published=no
    for key in keys/"$2"-*.pem; do
        if cmp -s "$key" "$1/$2.pub"; then published=yes; fi
    done
    [ "$published" = yes ] || false_claim 19 "$1/$2.pub is no published key"
    verify "$1/$2.pub" "$work/sig" "$1/SHA256SUMS" || false_claim 19 "$1"
    if [ -f "$1/score.json" ]; then
        jq -e --arg d "$(digest "$1/score.json")" 'any(.[]; .public_sha256 == $d)' \
            "$work/statements" > /dev/null || false_claim 24 "$1/score.json"
    fi
}

[ -z "$(find . ! -type f ! -type d)" ] || false_claim 1 'something is no plain file'
holds 1 'plain files'

sha256sum -c --strict --quiet SHA256SUMS || false_claim 2 'a file differs from SHA256SUMS'
find . -type f ! -path ./SHA256SUMS | cut -c 3- | sort > "$work/found"
cut -c 67- SHA256SUMS > "$work/listed"
cmp -s "$work/found" "$work/listed" || false_claim 2 'SHA256SUMS does not list exactly the files'
holds 2 'bundle complete'

for key in keys/*.pem; do
    id=$(openssl pkey -pubin -in "$key" -outform DER | sha256sum | cut -c 1-16)
    case $key in *-"$id".pem) ;; *) false_claim 3 "$key has another id" ;; esac
done
holds 3 'keys have the ids in their names'

jq -r '(.payload | @base64d | fromjson) as $said
    | [.payload, .payloadType, .signatures[0].sig, .signatures[0].keyid[0:16], $said.sequence,
       if $said.kind == "key-rotated" then $said.new_key.role
       elif $said.kind | IN("run-scored", "labels-added", "edition-revealed") then "scorer"
       else "run" end] | @tsv' log/entries.jsonl > "$work/table" || false_claim 5 'not all are JSON'
n=0
tab=$(printf '\t')
while IFS= read -r line && IFS=$tab read -r payload type sig id sequence role <&3; do
    printf %s "$payload" | base64 -d > "$work/payload"
    printf %s "$sig" | base64 -d > "$work/sig"
    {
        printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c < "$work/payload")"
        cat "$work/payload"
    } > "$work/pae"
    verify "keys/$role-$id.pem" "$work/sig" "$work/pae" || false_claim 5 "statement $n"
    [ "$sequence" = "$n" ] || false_claim 5 "statement $n has another number"
    printf '\000%s' "$line" | openssl dgst -sha256 -binary > "$work/h.$n"
    n=$((n + 1))
done < log/entries.jsonl 3< "$work/table"
jq -s 'map(.payload | @base64d | fromjson)' log/entries.jsonl > "$work/statements"
holds 5 "$n statements are numbered and signed"

jq -r '(map(select(.kind == "run-voided").run_id)) as $voided
    | (map(select(.kind == "edition-sealed") | {key: .edition, value: .quota.certified_runs})
       | from_entries) as $cap
    | map(select(.kind == "run-started" and (.run_id | IN($voided[]) | not)))
    | group_by([.edition, .team])[]
    | select(length > $cap[.[0].edition]) | "\(.[0].team) has \(length) runs in \(.[0].edition)"' \
    "$work/statements" > "$work/over"
[ ! -s "$work/over" ] || false_claim 8 "$(cat "$work/over")"
holds 8 'no team has more counted runs than its edition allows'

left=$n
while [ "$left" -gt 1 ]; do
    i=0
    next=0
    while [ "$i" -lt "$left" ]; do
        if [ $((i + 1)) -lt "$left" ]; then
            { printf '\001'; cat "$work/h.$i" "$work/h.$((i + 1))"; } |
                openssl dgst -sha256 -binary > "$work/node"
        else
            cp "$work/h.$i" "$work/node"
        fi
        mv "$work/node" "$work/h.$next"
        i=$((i + 2))
        next=$((next + 1))
    done
    left=$next
done
[ "$(sed -n 2p log/checkpoint)" = "$n" ] || false_claim 9 'the checkpoint is of another size'
[ "$(sed -n 3p log/checkpoint)" = "$(base64 < "$work/h.0")" ] || false_claim 9 'another tree'
head -n 3 log/checkpoint > "$work/note"
sed -n 5p log/checkpoint | sed 's/.* //' | base64 -d | tail -c +5 > "$work/sig"
signed=no
for key in keys/log-*.pem; do
    if verify "$key" "$work/sig" "$work/note"; then signed=yes; fi
done
[ "$signed" = yes ] || false_claim 9 'the checkpoint is not signed by the log'
holds 9 'the signed checkpoint is of exactly these statements'

for folder in editions/*; do
    name=${folder#editions/}
    jq --arg e "$name" '.[] | select(.kind == "edition-sealed" and .edition == $e)' \
        "$work/statements" > "$work/sealed"
    for pair in seal.json:seal_sha256 edition.yaml:edition_sha256 profile.yaml:profile_sha256 \
        sealed.sha256:sealed_sums_sha256; do
        [ "$(digest "$folder/${pair%%:*}")" = "$(jq -r ".${pair##*:}" "$work/sealed")" ] ||
            false_claim 12 "$folder/${pair%%:*}"
    done
    if [ -f "$folder/vocabulary.txt" ]; then
        sealed=$(jq -r .vocabulary_sha256 "$folder/seal.json")
        [ "$(digest "$folder/vocabulary.txt")" = "$sealed" ] ||
            false_claim 12 "$folder/vocabulary.txt"
    fi
    holds 12 "$folder is as it was sealed"
    [ -d "$folder/revealed" ] || continue
    [ "$(digest "$folder/revealed/clips.sha256")" = "$(jq -r .clip_set_sha256 "$work/sealed")" ] ||
        false_claim 16 "$folder/revealed/clips.sha256"
    for labels in "$folder"/revealed/*.jsonl; do
        version=${labels##*/}
        jq -e --arg e "$name" --arg v "${version%.jsonl}" --arg d "$(digest "$labels")" \
            'any(.[]; .edition == $e and (.kind == "edition-sealed" or .kind == "labels-added")
                and .labels.version == $v and .labels.sha256 == $d)' \
            "$work/statements" > /dev/null || false_claim 16 "$labels"
    done
    holds 16 "$folder was revealed as it was committed to"
done

for folder in runs/*; do
    [ -d "$folder" ] || continue
    check_sums "$folder" run
    if [ -f "$folder/run.dsse.json" ]; then
        open_envelope "$folder/run.dsse.json"
        verify "$folder/run.pub" "$work/sig" "$work/pae" || false_claim 20 "$folder/run.dsse.json"
        jq -r '.subject[] | "\(.digest.sha256)  \(.name)"' "$work/payload" > "$work/subjects"
        (cd "$folder" && sha256sum -c --strict --quiet "$work/subjects") ||
            false_claim 20 "$folder: a subject differs"
    fi
    for scores in "$folder"/scores/*; do
        if [ -d "$scores" ]; then check_sums "$scores" scorer; fi
    done
    holds 20 "$folder is listed, signed and stated"
done
echo 'Everything that these tools can check holds.'
"""
