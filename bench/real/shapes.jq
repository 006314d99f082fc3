# A job for jq: groups, rebuilds and sorts an array of objects.
group_by(.owner)
| map({owner: .[0].owner, total: (map(.price) | add), names: (map(.name | ascii_upcase) | sort | unique)})
| sort_by(.total)
| map(. + {first: .names[0], text: (.names | join(","))})
| map(select(.total > 10) | to_entries | from_entries)
| length
