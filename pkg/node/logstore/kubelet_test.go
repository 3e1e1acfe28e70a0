package logstore

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

const (
	uid    = "7f1c0a52-1111-2222-3333-444455556666"
	podDir = "pai-jobs_0123456789abcdef-worker-0_" + uid
)

// lab is a machine with the kubelet's folder, a container that writes to this folder, and the folder of the store.
type lab struct {
	t            *testing.T
	pods, folder string
	groups       string // control groups of the machine
	now          time.Time
	limits       Limits
	lines        int // printed so far
	rotations    int
	store        *Store
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, pods: t.TempDir(), folder: t.TempDir(), groups: t.TempDir(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), limits: Limits{PerTask: 1 << 30, Total: 1 << 30, Age: time.Hour}}
	require.NoError(t, os.MkdirAll(l.container(), 0o755))
	l.restart()
	return l
}

func (l *lab) container() string { return filepath.Join(l.pods, podDir, "app") }

func (l *lab) current() string { return filepath.Join(l.container(), "0.log") }

// restart opens the store again without closing the old store, as after a kill.
func (l *lab) restart() {
	s, err := Open(Options{Pods: l.pods, Folder: l.folder, Namespace: "pai-jobs", Limits: l.limits, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return l.now }})
	require.NoError(l.t, err)
	l.store, s.step = s, time.Millisecond
	l.t.Cleanup(s.close)
}

func (l *lab) raw(text string) {
	f, err := os.OpenFile(l.current(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	require.NoError(l.t, err)
	_, err = f.WriteString(text)
	require.NoError(l.t, err)
	require.NoError(l.t, f.Close())
}

func (l *lab) print(n int) {
	var b strings.Builder
	for range n {
		l.lines++
		l.now = l.now.Add(time.Millisecond)
		fmt.Fprintf(&b, "%s stdout F line %d\n", l.now.Format(time.RFC3339Nano), l.lines)
	}
	l.raw(b.String())
}

// rotate rotates the container's file like the kubelet. rotate adds the time to the name of the file, and containerd starts a new file.
func (l *lab) rotate() {
	if info, err := os.Stat(l.current()); err != nil || info.Size() == 0 {
		return // only what is too large
	}
	l.rotations++
	require.NoError(l.t, os.Rename(l.current(), fmt.Sprintf("%s.20261122-16%04d", l.current(), l.rotations)))
	l.raw("")
}

func (l *lab) rotated() []string {
	names, err := filepath.Glob(l.current() + ".*")
	require.NoError(l.t, err)
	return names
}

// squeeze compresses the oldest rotated files, and keeps only the newest files.
func (l *lab) squeeze(compress, keep int) {
	for i, name := range l.rotated() {
		if i >= compress || strings.HasSuffix(name, ".gz") {
			continue
		}
		data, err := os.ReadFile(name)
		require.NoError(l.t, err)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err = z.Write(data)
		require.NoError(l.t, err)
		require.NoError(l.t, z.Close())
		require.NoError(l.t, os.WriteFile(name+".tmp", b.Bytes(), 0o640))
		require.NoError(l.t, os.Rename(name+".tmp", name+".gz"))
		require.NoError(l.t, os.Remove(name))
	}
	for names := l.rotated(); len(names) > keep; names = names[1:] {
		require.NoError(l.t, os.Remove(names[0]))
	}
}

func (l *lab) round() { l.store.Round(l.t.Context()) }

func (l *lab) query(text string) Query {
	v, err := url.ParseQuery(text)
	require.NoError(l.t, err)
	q, _, err := NewServer(l.store, nil, "", "").query(v)
	require.NoError(l.t, err)
	return q
}

func (l *lab) page(q Query) (*Page, []string) {
	x := l.store.find(uid, "app")
	require.NotNil(l.t, x, "there is no log")
	p, err := l.store.await(l.t.Context(), x, q, 0)
	require.NoError(l.t, err)
	var out []string
	require.NoError(l.t, p.each(q, func(l logapi.Line) error {
		out = append(out, string(l.Text))
		return nil
	}))
	return p, out
}

func (l *lab) all(most int64) (start int64, gaps int, lines []string) {
	q := Query{Tail: -1, Most: most}
	for i := 0; ; i++ {
		p, more := l.page(q)
		if i == 0 {
			start, gaps = p.Start, p.Gaps
		}
		lines = append(lines, more...)
		if p.Next >= p.End {
			return start, gaps, lines
		}
		require.Greater(l.t, p.Next, q.Offset, "a page goes on")
		q.Offset = p.Next
	}
}

// whole verifies that the log contains each printed line once and in order.
func (l *lab) whole() {
	l.t.Helper()
	start, gaps, lines := l.all(64 << 10)
	require.Zero(l.t, start)
	require.Zero(l.t, gaps)
	require.Len(l.t, lines, l.lines)
	for i, text := range lines {
		require.Equal(l.t, fmt.Sprintf("line %d", i+1), text)
	}
}
