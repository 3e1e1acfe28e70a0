package main

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/sim"
)

// figures holds the results of a run. The first figures are the columns of hived.csv after the seed. The other figures weren't measured for HiveD.
type figures []float64

const (
	utilisation = iota
	useful
	locality
	kills
	lost // percent of the work
	queueGuaranteed
	queueGuaranteed99
	queueOpportunistic
	queueOpportunistic99
	guaranteed
	guaranteed99
	opportunistic
	opportunistic99
	all
	all99
	rack16
	rack32
	rack64
	columns
)

// ofHiveD is the number of figures for each run in hived.csv.
const ofHiveD = rack16

func figuresOf(r *sim.Report) figures {
	c := r.Completion
	f := append(make(figures, 0, columns),
		r.Utilisation, r.UsefulUtilisation, r.OptimalLocality.All.Share, float64(r.PreemptedJobs), c.LostWork*100,
		c.Guaranteed.Queue.Mean, c.Guaranteed.Queue.P99, c.Opportunistic.Queue.Mean, c.Opportunistic.Queue.P99,
		c.Guaranteed.Time.Mean, c.Guaranteed.Time.P99, c.Opportunistic.Time.Mean, c.Opportunistic.Time.P99, c.All.Time.Mean, c.All.Time.P99,
	)
	for _, gpus := range []int{16, 32, 64} {
		f = append(f, oneRack(r, gpus))
	}
	return f
}

// oneRack returns the share of jobs of a size that have all of their GPUs in one rack. It returns NaN if there are no such jobs.
func oneRack(r *sim.Report, gpus int) float64 {
	for _, s := range r.Sizes {
		if s.GPUs == gpus {
			return 1 - float64(s.Levels[sim.Beyond])/float64(s.Starts)
		}
	}
	return math.NaN()
}

func mean(list []figures) figures {
	if len(list) == 0 {
		return nil
	}
	out := make(figures, len(list[0]))
	for _, f := range list {
		for i, v := range f {
			out[i] += v / float64(len(list))
		}
	}
	return out
}

// hivedKey identifies a run of HiveD.
type hivedKey struct {
	gpus    int
	variant string
	seed    int
}

type hived map[hivedKey]figures

//go:embed hived.csv
var hivedText string

func readHiveD() (hived, error) {
	lines, err := csv.NewReader(strings.NewReader(hivedText)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("hived.csv: %w", err)
	}
	out := hived{}
	names := map[string]string{"K": variants[0].name, "L": variants[1].name}
	for _, line := range lines[1:] {
		gpus, err1 := strconv.Atoi(line[0])
		seed, err2 := strconv.Atoi(line[2])
		if err1 != nil || err2 != nil || names[line[1]] == "" || len(line) != 3+ofHiveD {
			return nil, fmt.Errorf("hived.csv: %q does not describe a run", line)
		}
		f := make(figures, ofHiveD)
		for i := range f {
			if f[i], err = strconv.ParseFloat(line[3+i], 64); err != nil {
				return nil, fmt.Errorf("hived.csv: %w", err)
			}
		}
		out[hivedKey{gpus, names[line[1]], seed}] = f
	}
	return out, nil
}

// mean returns the means of HiveD's figures over the seeds, or nil if HiveD wasn't measured with one of the seeds.
func (h hived) mean(gpus int, variant string, seeds []int) figures {
	var list []figures
	for _, seed := range seeds {
		f, ok := h[hivedKey{gpus, variant, seed}]
		if !ok {
			return nil
		}
		list = append(list, f)
	}
	return mean(list)
}

// row is a row of the table: a policy and its figures.
type row struct {
	name string
	figures
}

const header = `| GPUs | work of killed jobs | policy | guaranteed: mean / p99, s | of HiveD's | opportunistic: mean / p99, s | of HiveD's | all: mean, s | wait for the start, guaranteed / opportunistic, s | kills | of HiveD's | work lost | useful | optimal level | one rack, 16 / 32 / 64 GPUs |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`

// table returns the rows for one size and variant as Markdown. reference holds HiveD's figures, or is nil without these figures.
func table(gpus int, v variant, reference figures, rows []row) string {
	var b strings.Builder
	rows = merged(rows)
	if reference != nil {
		rows = append([]row{{"HiveD", reference}}, rows...)
	}
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s / %s | %s | %s / %s | %s | %s | %s / %s | %s | %s | %.1f %% | %s | %s | %s |\n",
			thousands(float64(gpus)), v.name, r.name,
			thousands(r.figures[guaranteed]), thousands(r.figures[guaranteed99]), r.against(reference, guaranteed, guaranteed99),
			thousands(r.figures[opportunistic]), thousands(r.figures[opportunistic99]), r.against(reference, opportunistic, opportunistic99),
			thousands(r.figures[all]),
			thousands(r.figures[queueGuaranteed]), thousands(r.figures[queueOpportunistic]),
			thousands(r.figures[kills]), r.against(reference, kills), r.figures[lost], hundredths(r.figures[useful]), thousandths(r.figures[locality]), r.racks())
	}
	return b.String()
}

// merged merges policies with the same results into one row.
func merged(rows []row) []row {
	var out []row
	for _, r := range rows {
		same := slices.IndexFunc(out, func(o row) bool { return o.equal(r.figures) })
		if same < 0 {
			out = append(out, r)
			continue
		}
		out[same].name += ", " + r.name
	}
	return out
}

func (f figures) equal(other figures) bool {
	return slices.EqualFunc(f, other, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
}

// against formats figures of the row relative to HiveD's figures.
func (r *row) against(reference figures, which ...int) string {
	if reference == nil || r.name == "HiveD" {
		return "–"
	}
	var parts []string
	for _, i := range which {
		parts = append(parts, thousandths(r.figures[i]/reference[i]))
	}
	return strings.Join(parts, " / ")
}

func (r *row) racks() string {
	if len(r.figures) < columns {
		return "–"
	}
	var parts []string
	for _, i := range []int{rack16, rack32, rack64} {
		if math.IsNaN(r.figures[i]) {
			parts = append(parts, "–")
			continue
		}
		parts = append(parts, hundredths(r.figures[i]))
	}
	return strings.Join(parts, " / ")
}

func hundredths(v float64) string { return strings.TrimPrefix(strconv.FormatFloat(v, 'f', 2, 64), "0") }
func thousandths(v float64) string {
	return strings.TrimPrefix(strconv.FormatFloat(v, 'f', 3, 64), "0")
}

// thousands formats a number with commas as thousands separators.
func thousands(v float64) string {
	if v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
