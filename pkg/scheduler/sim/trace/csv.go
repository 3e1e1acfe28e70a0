package trace

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Job is a gang of equal pods that arrives, runs and ends.
type Job struct {
	ID int
	// Arrival and Duration are in seconds.
	Arrival, Duration int
	VC                string
	// Priority is cell.Opportunistic or a guaranteed priority.
	Priority int
	// Pods is the number of pods. Each pod uses GPUsPerPod GPUs.
	Pods, GPUsPerPod int
}

// GPUs returns the number of GPUs of the whole gang.
func (j Job) GPUs() int { return j.Pods * j.GPUsPerPod }

var columns = []string{"job_id", "arrival_s", "duration_s", "vc", "priority", "pods", "gpus_per_pod"}

// Header returns the first line of a trace file.
func Header() string { return strings.Join(columns, ",") }

// MaxSeconds is the largest time in a trace. Sums of such times remain far below the maximum of int.
const MaxSeconds = 1 << 40

const maxPods = 1 << 20

// WriteCSV writes jobs as a trace file.
func WriteCSV(w io.Writer, jobs []Job) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, Header())
	for _, j := range jobs {
		fmt.Fprintf(b, "%d,%d,%d,%s,%d,%d,%d\n", j.ID, j.Arrival, j.Duration, j.VC, j.Priority, j.Pods, j.GPUsPerPod)
	}
	return b.Flush()
}

// ReadCSV reads a trace file and returns its jobs in the order of the file. file is the file name in errors. Columns may be in
// any order. Unknown columns are ignored.
func ReadCSV(file string, r io.Reader) ([]Job, error) {
	cr := csv.NewReader(r)
	cr.TrimLeadingSpace, cr.ReuseRecord, cr.FieldsPerRecord = true, true, -1
	head, err := cr.Read()
	if errors.Is(err, io.EOF) {
		return nil, hint.Errorf("the first line is "+Header(), "%s is empty", file)
	}
	if err != nil {
		return nil, syntaxError(file, err)
	}
	at, err := header(file, head)
	if err != nil {
		return nil, err
	}
	width := len(head)
	var jobs []Job
	seen := map[int]int{}
	for {
		rec, err := cr.Read()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return nil, syntaxError(file, err)
		}
		line, _ := cr.FieldPos(0)
		if len(rec) != width {
			return nil, hint.Errorf("every line has the columns of the first", "%s:%d: %d columns instead of %d", file, line, len(rec), width)
		}
		j, err := parseJob(rec, at)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		if first, ok := seen[j.ID]; ok {
			return nil, hint.Errorf("give each job a different id", "%s:%d: job_id %d is on line %d already", file, line, j.ID, first)
		}
		seen[j.ID] = line
		jobs = append(jobs, j)
	}
}

// header returns the index of each column by name.
func header(file string, head []string) (map[string]int, error) {
	at := map[string]int{}
	for i, name := range head {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, ok := at[name]; ok && slices.Contains(columns, name) {
			return nil, hint.Errorf("name each column once", "%s:1: column %q occurs twice", file, name)
		}
		at[name] = i
	}
	for _, name := range columns {
		if _, ok := at[name]; !ok {
			return nil, hint.Errorf("the first line is "+Header(), "%s:1: there is no column %q", file, name)
		}
	}
	return at, nil
}

func parseJob(rec []string, at map[string]int) (Job, error) {
	j := Job{VC: strings.TrimSpace(rec[at["vc"]])}
	if j.VC == "" {
		return j, hint.Errorf("write the name of a virtual cluster", "vc is empty")
	}
	for _, f := range []struct {
		column   string
		to       *int
		min, max int
	}{
		{"job_id", &j.ID, 0, MaxSeconds},
		{"arrival_s", &j.Arrival, 0, MaxSeconds},
		{"duration_s", &j.Duration, 0, MaxSeconds},
		{"priority", &j.Priority, cell.Opportunistic, cell.MaxGuaranteed},
		{"pods", &j.Pods, 1, maxPods},
		{"gpus_per_pod", &j.GPUsPerPod, 1, maxPods},
	} {
		text := strings.TrimSpace(rec[at[f.column]])
		n, err := strconv.Atoi(text)
		if err != nil || n < f.min || n > f.max {
			return j, hint.Errorf(fmt.Sprintf("write a whole number from %d to %d", f.min, f.max), "%s is %q", f.column, text)
		}
		*f.to = n
	}
	return j, nil
}

func syntaxError(file string, err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return hint.Errorf("write comma-separated values; the first line is "+Header(), "%s:%d: %w", file, p.Line, p.Err)
	}
	return fmt.Errorf("read %s: %w", file, err)
}
