package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/journal"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("x", 3600)) }

func open(t *testing.T) (j *journal.Journal, stderr *bytes.Buffer, file string) {
	t.Helper()
	stderr, file = &bytes.Buffer{}, filepath.Join(t.TempDir(), "logs", "runtime.log")
	return journal.Open(stderr, file, now), stderr, file
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

func TestEveryLineIsMarkedAndTheFileHasTimes(t *testing.T) {
	j, stderr, file := open(t)
	j.Printf("one\ntwo %d\r\n", 2)
	j.Notef("not shown")
	const at = "2026-01-02T02:04:05.0000006Z "
	assert.Equal(t, "[pai-runtime] one\n[pai-runtime] two 2\n", stderr.String())
	assert.Equal(t, at+"[pai-runtime] one\n"+at+"[pai-runtime] two 2\n"+at+"[pai-runtime] not shown\n", read(t, file))
	assert.Equal(t, "[pai-runtime] one\n[pai-runtime] two 2\n[pai-runtime] not shown\n", string(j.Tail()))
}

func TestAMessageIsNoFormat(t *testing.T) {
	j, stderr, _ := open(t)
	w := j.Writer()
	_, err := w.Write([]byte("100%d%s done\n"))
	require.NoError(t, err)
	assert.Equal(t, "[pai-runtime] 100%d%s done\n", stderr.String())
}

func TestAContainerThatIsStartedAgainGoesOnInItsFile(t *testing.T) {
	j, _, file := open(t)
	j.Printf("first")
	journal.Open(&bytes.Buffer{}, file, now).Printf("second")
	assert.Equal(t, 2, strings.Count(read(t, file), "\n"))
}

func TestWithoutAFileTheLogHasTheMessages(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	var stderr bytes.Buffer
	j := journal.Open(&stderr, filepath.Join(blocked, "runtime.log"), now)
	j.Printf("hello")
	assert.Contains(t, stderr.String(), "the runtime's messages can't be stored")
	assert.Contains(t, stderr.String(), "[pai-runtime] hello\n")
	assert.Contains(t, string(j.Tail()), "hello")
}

type brokenLog struct{}

func (brokenLog) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runtime.log")
	journal.Open(brokenLog{}, file, now).Printf("kept")
	assert.Contains(t, read(t, file), "kept")
}

func TestTheFileIsBounded(t *testing.T) {
	j, stderr, file := open(t)
	line := strings.Repeat("x", 60<<10)
	for range 700 { // 42 MB
		j.Notef("%s", line)
	}
	j.Printf("the last")
	var sum int64
	list, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	assert.Len(t, list, 2)
	for _, e := range list {
		info, err := e.Info()
		require.NoError(t, err)
		sum += info.Size()
	}
	assert.Less(t, sum, int64(21<<20))
	assert.Contains(t, read(t, file), "the last")
	assert.Equal(t, "[pai-runtime] the last\n", stderr.String())
	assert.LessOrEqual(t, len(j.Tail()), 1<<20)
	assert.True(t, bytes.HasSuffix(j.Tail(), []byte("the last\n")))
}

func TestOutputOfPluginsIsCutIntoLines(t *testing.T) {
	long := strings.Repeat("a", 150<<10)
	for name, c := range map[string]struct {
		writes []string
		want   []string
	}{
		"lines in pieces":        {[]string{"on", "e\ntw", "o\n"}, []string{"one", "two"}},
		"no end":                 {[]string{"one\ntwo"}, []string{"one", "two"}},
		"an end of Windows":      {[]string{"one\r\ntwo\r\n"}, []string{"one", "two"}},
		"empty lines":            {[]string{"\n\nx\n"}, []string{"", "", "x"}},
		"nothing":                {nil, nil},
		"a line that ends late":  {[]string{long + "\nend\n"}, []string{long[:64<<10], long[:64<<10], long[:22<<10], "end"}},
		"a line without end":     {[]string{long[:100<<10], long[:50<<10]}, []string{long[:64<<10], long[:64<<10], long[:22<<10]}},
		"bytes that are no text": {[]string{"\x00\xff\x1b[31m\n"}, []string{"\x00\xff\x1b[31m"}},
	} {
		t.Run(name, func(t *testing.T) {
			j, stderr, _ := open(t)
			w := j.Writer()
			for _, p := range c.writes {
				n, err := w.Write([]byte(p))
				require.NoError(t, err)
				assert.Equal(t, len(p), n)
			}
			w.Flush()
			w.Flush() // nothing is written twice
			var want strings.Builder
			for _, line := range c.want {
				fmt.Fprintf(&want, "[pai-runtime] %s\n", line)
			}
			assert.Equal(t, want.String(), stderr.String())
		})
	}
}

func TestLinesOfManyStayWhole(t *testing.T) {
	j, stderr, _ := open(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			w := j.Writer()
			for k := range 200 {
				switch i % 4 {
				case 0:
					j.Printf("line %d.%d.", i, k)
				case 1:
					fmt.Fprintf(w, "line %d", i)
					fmt.Fprintf(w, ".%d.\n", k)
				case 2:
					fmt.Fprintf(j.Stderr(), "[pai-runtime] line %d.%d.\n", i, k)
				default:
					j.Notef("note %d.%d", i, k)
					_ = j.Tail()
				}
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	assert.Len(t, lines, 6*200)
	for _, line := range lines {
		require.Regexp(t, `^\[pai-runtime\] line \d+\.\d+\.$`, line)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n\r"), 3)
	f.Add(bytes.Repeat([]byte("\r"), 70<<10), 65<<10)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var stderr bytes.Buffer
		w := journal.Open(&stderr, "/dev/null", now).Writer()
		if cut < 0 || cut > len(data) {
			cut = len(data)
		}
		_, _ = w.Write(data[:cut])
		_, _ = w.Write(data[cut:])
		w.Flush()
		got := strings.ReplaceAll(stderr.String(), "[pai-runtime] ", "")
		drop := strings.NewReplacer("\r", "", "\n", "", "[pai-runtime] ", "")
		assert.Equal(t, drop.Replace(string(data)), drop.Replace(got), "nothing is lost but ends of lines")
		for line := range strings.Lines(stderr.String()) {
			assert.True(t, strings.HasPrefix(line, "[pai-runtime] "))
		}
	})
}
