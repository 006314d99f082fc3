# Counts and groups for gawk: words.awk -v rounds=N.  Associative arrays, strings that grow, regular expressions, sorting.
function random(bound) { state = (state * 16807) % 2147483647; return state % bound }
BEGIN {
    state = 7
    for (round = 1; round <= rounds; round++) {
        line = ""
        for (at = 0; at < 20000; at++) line = line (at ? " " : "") "w" random(3000) "x" random(40)
        count = split(line, words, " ")
        for (at = 1; at <= count; at++) {
            seen[words[at]]++
            group[random(50), length(words[at])] = group[random(50), length(words[at])] " " words[at]
        }
        gsub(/x[0-9]+/, "-", line)
        total += length(line)
        if (round % 4 == 0) { delete seen; delete group }
    }
    print total, asorti(seen, sorted)
}
