package cell

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// A walk is a sequence of bytes: a header that determines the cluster, and a record for each step.
const (
	headerBytes = 32
	recordBytes = 8
	walkSteps   = 400
)

// play executes the steps of a walk. It returns the first violation, which may be a panic.
func play(data []byte, trace *strings.Builder, set func(*world)) (w *world, err error) {
	defer catch(&err)
	if len(data) < headerBytes {
		return nil, nil
	}
	c := newChoices(data[:headerBytes])
	conf := makeCluster(c)
	if trace != nil {
		fmt.Fprintf(trace, "types %+v\nphysical %+v\nvirtual clusters %+v\n", conf.Types, conf.Physical, conf.VirtualClusters)
	}
	w = newWorld(c, conf)
	w.trace = trace
	if set != nil {
		set(w)
	}
	w.verify()
	for at := headerBytes; at+recordBytes <= len(data); at += recordBytes {
		w.do(data[at : at+recordBytes])
	}
	return w, nil
}

// catch converts a violation or a panic to an error.
func catch(err *error) {
	switch v := recover().(type) {
	case nil:
	case violation:
		*err = fmt.Errorf("%s", v.text)
	default:
		*err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
	}
}

func randomWalk(seed uint64, steps int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, headerBytes+steps*recordBytes)
	for i := range data {
		data[i] = byte(r.UintN(256))
	}
	return data
}

// TestRandomStepsKeepEveryPromise executes random steps. PAICTL_CELL_STEPS is the number of steps.
func TestRandomStepsKeepEveryPromise(t *testing.T) {
	steps := envNumber("PAICTL_CELL_STEPS", 40_000)
	from := envNumber("PAICTL_CELL_SEED", 1)
	tally := map[string]int{}
	found := map[string]bool{}
	debug.SetGCPercent(400)
	for seed := from; seed < from+(steps+walkSteps-1)/walkSteps; seed++ {
		data := randomWalk(uint64(seed), walkSteps)
		set := checkEvery(seed)
		w, err := play(data, nil, set)
		if err != nil {
			if k := kind(err); !found[k] {
				found[k] = true
				if _, again := play(data, nil, nil); again != nil {
					set = nil // the walk also fails with all checks at each step
				}
				report(t, data, set)
				t.Errorf("seed %d: %s", seed, k)
			}
			if len(found) >= envNumber("PAICTL_CELL_FINDS", 1) {
				t.FailNow()
			}
			continue
		}
		for k, n := range w.tally {
			tally[k] += n
		}
		if done := (seed - from + 1) * walkSteps; done%1_000_000 == 0 {
			t.Logf("%d steps so far", done)
		}
	}
	t.Logf("%d steps, answers %v", steps, tally)
}

// checkEvery returns a function that limits the expensive checks to every n-th step. n is between 17 and 31, depending on the
// seed. For one seed in 16, it returns nil, so that the checks run at every step.
func checkEvery(seed int) func(*world) {
	if seed%16 == 0 {
		return nil
	}
	return func(w *world) { w.every = 16 + seed%16 }
}

func envNumber(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

var particulars = regexp.MustCompile(`[A-D]/\S+|"[^"]*"|[0-9]+|\[.*\]|\{.*\}|\b[ngpu][0-9]+\b`)

// kind returns the text of an error without the names of gangs and nodes.
func kind(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if strings.HasPrefix(text, "panic") {
		lines := strings.Split(text, "\n")
		for i := range lines {
			if strings.HasPrefix(lines[i], "panic(") && i+2 < len(lines) {
				where, _, _ := strings.Cut(lines[i+2], "(0x")
				return lines[0] + " in " + where
			}
		}
	}
	text, _, _ = strings.Cut(text, "\n")
	return particulars.ReplaceAllString(text, "#")
}

func report(t *testing.T, data []byte, set func(*world)) {
	t.Helper()
	_, first := play(data, nil, set)
	data = shrink(data, func(d []byte) error { _, err := play(d, nil, set); return err })
	var trace strings.Builder
	_, err := play(data, &trace, set)
	t.Logf("first: %v\nshrunk to %d steps: %v\n%s\n%s", kind(first), (len(data)-headerBytes)/recordBytes, err, trace.String(), corpus(data))
}

// corpus returns the walk in the format of testdata/fuzz/FuzzSteps.
func corpus(data []byte) string { return fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", data) }

// shrink removes steps and reduces numbers as long as the walk causes the same violation.
func shrink(data []byte, run func([]byte) error) []byte {
	want := kind(run(data))
	fails := func(d []byte) bool { return kind(run(d)) == want }
	for round := range 3 {
		for size := (len(data) - headerBytes) / recordBytes; size > 0; size /= 2 {
			for at := headerBytes; at+size*recordBytes <= len(data); {
				without := append(bytes.Clone(data[:at]), data[at+size*recordBytes:]...)
				if fails(without) {
					data = without
				} else {
					at += size * recordBytes
				}
			}
		}
		if len(data) > 2000 {
			break
		}
		for i := range data {
			for _, b := range []byte{0, data[i] / 2, data[i] - 1} {
				if b < data[i] {
					try := bytes.Clone(data)
					try[i] = b
					if fails(try) {
						data = try
						break
					}
				}
			}
		}
		_ = round
	}
	return data
}

// FuzzSteps lets the fuzzer choose the cluster and the steps.
func FuzzSteps(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomWalk(seed, 30))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > headerBytes+300*recordBytes {
			return
		}
		if _, err := play(data, nil, nil); err != nil {
			report(t, data, nil)
			t.Fatal(err)
		}
	})
}
