package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
)

// story describes a run that a test interrupts at some point, and the state that the next run must reach.
type story struct {
	lab *lab // the lab, prepared up to the point where the run starts
	// run makes one run, like a new process of paictl.
	run func() *outcome
	// between, if set, is called after the interrupted run has ended. Without it, the next run starts at once, while commands of the dead paictl may
	// still be running.
	between func()
	// check inspects the result of the last run. c is nil for the undisturbed run, which comes first.
	check func(c *crash, last *outcome)
	// mayFail means that the next run may fail, because check inspects its error.
	mayFail bool
}

// cutOff interrupts a story and then runs the story to its end. Either paictl dies before, during or after one of its commands, or the power fails
// at a point inside a command. For each interruption, begin creates the story in a new lab.
//
// A usual run uses a sample of commands and points, of as many kinds as possible. The sample depends on the test's binary, so it changes with the
// code. In the gate, it is always the same. PAICTL_TEST_CRASH=NUMBER uses the number as the seed. PAICTL_TEST_CRASH=all uses all commands and up to
// mostPoints points, which takes hours.
func cutOff(t *testing.T, commands, points int, begin func(t *testing.T) story) {
	t.Helper()
	clean := begin(t)
	c := &crash{breaks: countOnly}
	o := clean.cut(c)
	require.NoError(t, o.err, "%s", clean.lab.story(o))
	clean.check(nil, o)
	seed, all := sampleSeed(t)
	cuts := sampleOf(c.commandKinds(), c.pointKinds(), commands, points, seed)
	if all {
		cuts = allCuts(c.commandKinds(), c.pointKinds(), seed)
	}
	for _, cut := range cuts {
		t.Run(cut.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("PAICTL_TEST_CRASH=%d takes the same commands and points", seed)
				}
			}()
			s := begin(t)
			c := &crash{at: cut.at, when: cut.when, breaks: cut.breaks}
			last := s.cut(c)
			if !c.happened() {
				require.NoError(t, last.err, "%s", s.lab.story(last))
				s.check(c, last) // this run had fewer commands or points
				return
			}
			if s.between != nil {
				s.between()
			}
			// The run waits only for the lock. The machine releases the lock when it detects the end of the connection.
			last = s.run()
			for isLocked(last.err) {
				last = s.run()
			}
			if !s.mayFail {
				require.NoError(t, last.err, "%s", s.lab.story(last))
			}
			s.check(c, last)
		})
	}
}

func (s story) cut(c *crash) *outcome {
	c.lab = s.lab
	s.lab.crash.Store(c)
	s.lab.commands.Store(0)
	defer s.lab.crash.Store(nil)
	o := s.run()
	if c.happened() {
		c.now() // wait for its end
	}
	return o
}

type cut struct {
	name   string
	at     int
	when   moment
	breaks int
}

var moments = []moment{beforeCommand, duringCommand, afterCommand}

func cutAt(kinds []string, i int, when moment) cut {
	return cut{name: fmt.Sprintf("%s command %d, %s", when, i+1, kinds[i]), at: i + 1, when: when}
}

func cutInside(kinds []string, i int) cut {
	return cut{name: fmt.Sprintf("power off at point %d, %s", i+1, kinds[i]), breaks: i + 1}
}

// mostPoints limits the number of points of each story with PAICTL_TEST_CRASH=all.
const mostPoints = 700

func allCuts(commands, points []string, seed uint32) []cut {
	var out []cut
	for i := range commands {
		for _, when := range moments {
			out = append(out, cutAt(commands, i, when))
		}
	}
	step := 1 + len(points)/mostPoints
	for i := int(seed) % step; i < len(points); i += step {
		out = append(out, cutInside(points, i))
	}
	return out
}

func sampleOf(commands, points []string, ofCommands, ofPoints int, seed uint32) []cut {
	var out []cut
	for n, i := range amongKinds(commands, ofCommands, seed) {
		out = append(out, cutAt(commands, i, moments[(int(seed%3)+n)%len(moments)]))
	}
	for _, i := range amongKinds(points, ofPoints, seed) {
		out = append(out, cutInside(points, i))
	}
	return out
}

// amongKinds returns n indexes that are spread evenly over all kinds. The seed selects the first kinds and the index within each kind.
func amongKinds(kinds []string, n int, seed uint32) []int {
	var order []string
	places := map[string][]int{}
	for i, k := range kinds {
		if places[k] == nil {
			order = append(order, k)
		}
		places[k] = append(places[k], i)
	}
	var out []int
	for i := range min(n, len(kinds)) {
		of := places[order[(int(seed)+i*len(order)/n)%len(order)]]
		out = append(out, of[(int(seed)/len(order)+i*len(of)/n)%len(of)])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// program returns a number that depends on the test's binary, and so on all tested code.
var program = sync.OnceValues(func() (uint32, error) {
	name, err := os.Executable()
	if err != nil {
		return 0, err
	}
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return binary.BigEndian.Uint32(h.Sum(nil)), err
})

// sampleSeed returns the seed of a test's sample. The second result reports whether the test uses all points instead of a sample.
func sampleSeed(t *testing.T) (seed uint32, all bool) {
	t.Helper()
	v := os.Getenv("PAICTL_TEST_CRASH")
	if v != "" && v != "all" {
		n, err := strconv.ParseUint(v, 10, 32)
		require.NoError(t, err, `PAICTL_TEST_CRASH is "all" or a number`)
		return uint32(n), false
	}
	seed, err := uint32(1), error(nil)
	if !testing.Short() {
		seed, err = program()
	}
	require.NoError(t, err)
	name := fnv.New32a()
	_, _ = io.WriteString(name, t.Name())
	return seed ^ name.Sum32(), v == "all"
}

func allCrashes() bool { return os.Getenv("PAICTL_TEST_CRASH") == "all" }

func isLocked(err error) bool {
	_, is := errors.AsType[*engine.LockedError](err)
	return is
}

type listened struct {
	r    io.Reader
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *listened) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(b[:n])
	return n, err
}

var (
	ofPhase  = regexp.MustCompile(`\nbegin \S+ [\\']*([a-z-]+)`)
	function = regexp.MustCompile(`^\s*([a-z]+_[a-z_]+)`)
)

// kindUpload is the kind of a command that doesn't run a script.
const kindUpload = "upload"

// kind returns the kind of a command: the phase of a script that changes a host, or else the last function that the script calls.
func (h *listened) kind() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := h.text.String()
	if m := ofPhase.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if strings.Contains(text, `printf '\''@@ `) {
		return "look"
	}
	lines := strings.Split(text, "\n")
	for _, line := range slices.Backward(lines) {
		if m := function.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "_paictl") {
			return m[1]
		}
	}
	return kindUpload
}
