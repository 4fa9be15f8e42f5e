#!/usr/bin/env bash
# Compares every method that gives intervals with Hamiltonian Monte Carlo, on many posteriors, with the run files that `mpibayes init` writes.
#
#   bash jobs/agreement.sh [--seeds N] [--methods "sghmc svgd"] [--only "german heart"] [--output FOLDER]
#
# Runs go to runs/agreement of the repository, or to this folder.
# A line for each run: the largest distance of a mean from that of hmc (in sds), the least and the largest sd beside those of hmc, the seconds,
# and what the run says of itself. A run is silently wrong if it calls itself right, but a mean is more than .1 sd or an sd more than
# 10 % off. The last line counts them; the exit code is 1 if there are any, if a run has no result, or if there were no runs.
#
# The data sets are read from $MPIBAYES_DATA (binary/*.csv.gz, covertype/covtype_20k.csv.gz, uci_regression/*/data.txt.gz); those that are missing
# are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source jobs/env.sh

seeds=2
only=
work=runs/agreement
methods="svgd dsvgd u_dsvgd p_dsvgd pvi gvi npv pmd dsgld sghmc ec_sghmc ec_sgld async_sghmc"
while [ $# -gt 0 ]; do
    case "$1" in
        --seeds) seeds=$2 && shift 2 ;;
        --methods) methods=$2 && shift 2 ;;
        --only) only=$2 && shift 2 ;;
        --output) work=$2 && shift 2 ;;
        -h | --help)
            awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *)
            echo "agreement: unknown argument $1; see --help" >&2
            exit 2
            ;;
    esac
done

command -v mpibayes >/dev/null || cargo build --release --locked
sets=${MPIBAYES_DATA:-datasets}
mkdir -p "$work"

# A line for each posterior: its name, its table (none for those that are built in), the model, options of `import`, and arguments of `run`.
posteriors() {
    local name file german=$sets/binary/german.csv.gz
    local claims="--task counts --categorical region --exposure years"
    for name in heart german diabetis banana twonorm; do
        echo "$name|$sets/binary/$name.csv.gz|logistic||"
    done
    echo "covertype|$work/covertype.csv|logistic||"
    echo "german-4-by-label|$german|logistic||--set agents=4 --set data.partition=\"by_label\""
    echo "german-20-by-label|$german|logistic||--set agents=20 --set data.partition=\"by_label\""
    echo "ill-conditioned|$work/ill-conditioned.csv|linear|--task regression|"
    for name in concrete kin8nm; do
        echo "$name|$work/$name.csv|linear|--task regression|"
    done
    echo "robust|$work/concrete.csv|student_t|--task regression|"
    echo "wine|$work/wine-quality-red.csv|ordinal||"
    echo "wine-multinomial|$work/wine-quality-red.csv|multinomial||"
    echo "poisson|$work/claims.csv|poisson|$claims --drop school|"
    echo "overdispersed|$work/claims.csv|negative_binomial|$claims --drop school|"
    echo "hierarchy|$work/claims.csv|poisson|$claims --group school|"
    # Two modes.
    for name in mixture1d mixture2d; do
        echo "$name||toy||--set model.target=\"$name\""
    done
}

# Forest cover: class 2 against the others.
if [ -e "$sets/covertype/covtype_20k.csv.gz" ]; then
    zcat "$sets/covertype/covtype_20k.csv.gz" | awk -F, -v OFS=, '{ $NF = $NF == 2 ? "lodgepole" : "other"; print }' >"$work/covertype.csv"
fi
for name in concrete kin8nm wine-quality-red; do
    if [ -e "$sets/uci_regression/$name/data.txt.gz" ]; then
        zcat "$sets/uci_regression/$name/data.txt.gz" | awk -v OFS=, '{ $1 = $1; print }' >"$work/$name.csv"
    fi
done
# A linear regression whose features are nearly equal: the covariance of the features has a condition number of about 5e6.
awk 'BEGIN {
    srand(1)
    for (row = 0; row < 500; row++) {
        common = rand() - .5
        line = ""
        for (column = 0; column < 5; column++) { x = common + .001 * (rand() - .5); line = line x ","; sum += column * x }
        print line (sum + rand() - .5); sum = 0
    }
}' >"$work/ill-conditioned.csv"

# Counts of claims, over 1,200 rows of 20 schools in three regions: Poisson's distribution, given an effect of each school.
awk '
    function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185 * rand()) }
    BEGIN {
        srand(2)
        print "age,income,region,years,school,claims"
        split("east north west", region, " ")
        for (school = 0; school < 20; school++) effect[school] = .4 * normal()
        for (row = 0; row < 1200; row++) {
            age = normal(); income = normal(); at = int(3 * rand()); years = .5 + 4 * rand(); school = int(20 * rand())
            mean = years * exp(.3 * age - .2 * income + .2 * at + effect[school] - .7)
            for (count = -1; mean > 0; count++) mean += log(1 - rand())
            printf "%.4f,%.4f,%s,%.3f,s%d,%d\n", age, income, region[at + 1], years, school, count
        }
    }' >"$work/claims.csv"

silent=0 failed=0 runs=0
printf '%-20s %-12s %4s  %6s  %8s  %10s  %7s  %s\n' posterior method seed shift "least sd" "largest sd" seconds judgment
while IFS='|' read -r name file model options arguments; do
    [ -z "$file" ] || [ -e "$file" ] || continue
    [ -z "$only" ] || [[ " $only " == *" $name "* ]] || continue
    eval "arguments=($arguments)"
    data=()
    if [ -n "$file" ]; then
        # Options have no blanks in them.
        # shellcheck disable=SC2086
        mpibayes import table "$file" --label last $options -o "$work/$name.h5" --force >/dev/null
        data=(--data "$work/$name.h5")
    fi
    reference=$work/$name-hmc
    mpibayes init hmc --model "$model" "${data[@]}" -o "$work/$name-hmc.toml" --force >/dev/null 2>&1
    rm -rf "$reference"
    # Long enough that its own error does not count.
    if ! mpibayes run "$work/$name-hmc.toml" "${arguments[@]}" --set method.draws=2500 --output "$reference" 2>"$reference.log"; then
        echo "agreement: the reference of $name failed: $(tail -1 "$reference.log")" >&2
        exit 1
    fi
    if ! grep -q 'mpibayes: right: ' "$reference.log"; then
        echo "agreement: the reference of $name cannot be used: $(tail -1 "$reference.log")" >&2
        exit 1
    fi
    printf '%-20s hmc: %s\n' "$name" "$(tail -1 "$reference.log" | sed 's/mpibayes: //')"
    for method in $methods; do
        # Shards mean nothing to chains that see all rows. npv has one agent, and needs second derivatives, which mixtures do not have.
        case "$name,$method" in
            *-by-label,sghmc | *-by-label,ec_* | *-by-label,async_sghmc | *-by-label,npv | mixture*,npv) continue ;;
        esac
        mpibayes init "$method" --model "$model" "${data[@]}" -o "$work/$name-$method.toml" --force >/dev/null
        for seed in $(seq "$seeds"); do
            output=$work/$name-$method-$seed
            rm -rf "$output"
            from=$(date +%s.%N)
            mpibayes run "$work/$name-$method.toml" "${arguments[@]}" --set "seed=$seed" --output "$output" 2>"$output.log" || true
            seconds=$(awk -v from="$from" -v now="$(date +%s.%N)" 'BEGIN { print now - from }')
            runs=$((runs + 1))
            # By the names of columns. Names of parameters such as "weights[8,alcohol]" are quoted, and have commas in them.
            line=$(mpibayes compare "$output" --reference "$reference" --csv 2>/dev/null | sed 's/"[^"]*"/name/g' | awk -F, '
                NR == 1 { for (column = 1; column <= NF; column++) at[$column] = column }
                NR == 2 && at["shift"] && at["smallest_sd_ratio"] && at["largest_sd_ratio"] && at["judgment"] {
                    print $at["shift"], $at["smallest_sd_ratio"], $at["largest_sd_ratio"], $at["judgment"]
                }') || line=
            if [ -z "$line" ]; then
                failed=$((failed + 1))
                printf '%-20s %-12s %4d  %s\n' "$name" "$method" "$seed" "no result: $(tail -1 "$output.log")"
                continue
            fi
            read -r shift least largest judgment <<<"$line"
            wrong=$(awk -v m="$shift" -v s="$least" -v l="$largest" 'BEGIN { print (m > .1 || m < -.1 || s < .9 || l > 1.1) }')
            if [ "$wrong" = 1 ] && [ "$judgment" = right ]; then
                silent=$((silent + 1)) && judgment="right: SILENTLY WRONG"
            fi
            printf '%-20s %-12s %4d  %6.2f  %8.2f  %10.2f  %7.1f  %s\n' \
                "$name" "$method" "$seed" "$shift" "$least" "$largest" "$seconds" "$judgment"
        done
    done
done < <(posteriors)
echo "agreement: $runs runs, $silent of them silently wrong, $failed without a result"
[ "$silent" = 0 ] && [ "$failed" = 0 ] && [ "$runs" -gt 0 ]
