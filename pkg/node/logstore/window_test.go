package logstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

func (l *lab) window(query string) *logapi.Window {
	l.t.Helper()
	return answerOf[logapi.Window](l, "view=window&"+query)
}

func (l *lab) search(query string) *logapi.Matches {
	l.t.Helper()
	return answerOf[logapi.Matches](l, "view=matches&"+query)
}

func answerOf[T any](l *lab, query string) *T {
	l.t.Helper()
	w := ask(l.t, l, logapi.Path(uid, "app")+"?"+query, "sesame")
	require.Equal(l.t, http.StatusOK, w.Code, w.Body.String())
	out := new(T)
	require.NoError(l.t, json.Unmarshal(w.Body.Bytes(), out))
	return out
}

func texts(lines []logapi.PlacedLine) []string {
	out := []string{}
	for _, l := range lines {
		out = append(out, string(l.Text))
	}
	return out
}

// forward reads the whole log from the start in windows.
func (l *lab) forward(lines int) (out []logapi.PlacedLine) {
	for at := logapi.AtStart; ; {
		w := l.window(fmt.Sprintf("lines=%d&longest=65536&at=%s", lines, at))
		out = append(out, w.Lines...)
		if w.To >= w.End {
			return out
		}
		require.Greater(l.t, w.To, w.From, "each window ends behind its beginning")
		at = strconv.FormatInt(w.To, 10)
	}
}

func (l *lab) backward(lines int) (out []logapi.PlacedLine) {
	for at := logapi.AtEnd; ; {
		w := l.window(fmt.Sprintf("before=true&lines=%d&longest=65536&at=%s", lines, at))
		out = append(append([]logapi.PlacedLine{}, w.Lines...), out...)
		if w.From <= w.Start {
			return out
		}
		at = strconv.FormatInt(w.From, 10)
	}
}

func TestWindowsHaveEachLineOnceInBothDirections(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l, r := newLab(t), rand.New(rand.NewPCG(seed, 2))
			var want []string
			for range 40 {
				switch r.IntN(6) {
				case 0, 1:
					for range r.IntN(40) {
						l.print(1)
						want = append(want, fmt.Sprintf("line %d", l.lines))
					}
				case 2: // a line of several parts, which a rotation or a frame may cut
					text := ""
					stamp := func() string { // a file is known by the time of its first line
						l.now = l.now.Add(time.Millisecond)
						return l.now.Format(time.RFC3339Nano)
					}
					for part := range 1 + r.IntN(3) {
						l.raw(fmt.Sprintf("%s stdout P %d%s\n", stamp(), part, strings.Repeat("x", 9000)))
						text += fmt.Sprint(part) + strings.Repeat("x", 9000)
						if r.IntN(2) == 0 {
							l.rotate()
							l.round()
						}
					}
					l.raw(stamp() + " stdout F !\n")
					want = append(want, text+"!")
				case 3:
					l.rotate()
				case 4:
					l.round()
					_ = l.window("at=end") // stores small pieces, too
				case 5:
					l.restart()
				}
			}
			l.print(1)
			want = append(want, fmt.Sprintf("line %d", l.lines))
			for _, n := range []int{1, 3, 64, 2000} {
				ahead, back := l.forward(n), l.backward(n)
				assert.Equal(t, want, texts(ahead), "%d lines", n)
				assert.Equal(t, ahead, back, "%d lines", n)
			}
			for i, line := range l.forward(2000) {
				if i%7 != 0 {
					continue
				}
				w := l.window(fmt.Sprintf("lines=1&longest=65536&at=%d", line.At))
				require.Equal(t, []logapi.PlacedLine{line}, w.Lines, "a position leads to its line")
			}
		})
	}
}

// A window may end between the parts of two lines that were written at the same time. No part may be missing or duplicated.
func TestPartsOfBothStreamsAreInOneWindowEach(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	for i, line := range []string{"stdout P a1", "stderr P b1", "stderr F b2", "stdout P a2", "stdout F a3", "stderr F c", "stdout F d"} {
		l.raw(stamp + " " + line + "\n")
		if i == 3 {
			l.round()
			_ = l.window("at=end")
		}
	}
	assert.Equal(t, []string{"a1a2a3", "b1b2", "c", "d"}, texts(l.window("at=start").Lines))
	assert.Equal(t, []string{"a1a2a3", "b1b2", "c", "d"}, texts(l.window("at=end&before=true").Lines))
	for n := 1; n < 5; n++ {
		for name, lines := range map[string][]logapi.PlacedLine{"forward": l.forward(n), "backward": l.backward(n)} {
			all := strings.Join(texts(lines), "")
			for _, part := range []string{"a1", "a2", "a3", "b1", "b2", "c", "d"} {
				assert.Equal(t, 1, strings.Count(all, part), "%s in windows of %d lines, %s", part, n, name)
			}
			assert.Len(t, all, len("a1a2a3b1b2cd"))
		}
	}
	rest := l.window("lines=1&at=" + strconv.FormatInt(l.window("at=start").Lines[1].At, 10)).To
	assert.True(t, l.window("lines=1&at=" + strconv.FormatInt(rest, 10)).Lines[0].Continued, "its beginning is in the window before")
}

func TestPositionsStayWhenFilesAreRotatedAndDropped(t *testing.T) {
	l := newLab(t)
	l.limits.PerTask = 4 << 20
	l.restart()
	l.print(1000)
	old := l.window("at=start&lines=500")
	l.rotate()
	l.squeeze(9, 9)
	l.print(10)
	l.restart()
	w := l.window(fmt.Sprintf("lines=1&at=%d", old.To))
	assert.Equal(t, []string{"line 501"}, texts(w.Lines))
	l.print(200_000)
	l.round()
	w = l.window(fmt.Sprintf("lines=1&at=%d", old.To))
	assert.Greater(t, w.Start, old.To, "it was dropped")
	assert.Equal(t, w.Start, w.From, "what is left begins later, and the answer says so")
	assert.Len(t, w.Lines, 1)
	w = l.window(fmt.Sprintf("before=true&at=%d", old.To))
	assert.Empty(t, w.Lines)
	assert.Equal(t, int64(4<<20), w.Limit)
}

func TestPositionsThatNoLineHas(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	l.raw(stamp + " stdout F first\n" + stamp + " stdout F zwölf\n" + stamp + " stdout F third\n")
	second := l.window("at=start").Lines[1].At
	for _, at := range []int64{second + 1, second + int64(len(stamp+" stdout F zw"))} {
		assert.Equal(t, []string{"zwölf", "third"}, texts(l.window(fmt.Sprintf("at=%d", at)).Lines), "a position in a line, or in a letter, is the line's")
		assert.Equal(t, []string{"first"}, texts(l.window(fmt.Sprintf("before=true&at=%d", at)).Lines))
	}
	w := l.window("at=" + fmt.Sprint(int64(1)<<62))
	assert.Empty(t, w.Lines)
	assert.Equal(t, w.End, w.From)
	for _, query := range []string{"at=-1", "at=x", "at=99999999999999999999", "lines=0", "lines=2001", "longest=0", "longest=2000000", "line=1", "before=perhaps", "wait=soon", "at="} {
		assert.Equal(t, http.StatusBadRequest, ask(t, l, logapi.Path(uid, "app")+"?view=window&"+query, "sesame").Code, query)
	}
	for _, query := range []string{"", "match=(", "match=a&limit=0", "match=a&limit=1001", "match=a&at=-7", "match=a&lines=3", "match=" + strings.Repeat("a", 2000)} {
		assert.Equal(t, http.StatusBadRequest, ask(t, l, logapi.Path(uid, "app")+"?view=matches&"+query, "sesame").Code, query)
	}
	assert.Equal(t, http.StatusBadRequest, ask(t, l, logapi.Path(uid, "app")+"?view=other", "sesame").Code)
	assert.Equal(t, http.StatusForbidden, ask(t, l, logapi.Path(uid, "app")+"?view=window", "sesam").Code)
	assert.Equal(t, http.StatusNotFound, ask(t, l, logapi.Path(uid, "other")+"?view=window", "sesame").Code)
}

func TestLinesOfAnyBytesKeepThem(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	want := []string{"with a return\r", "", "\x00\xff\xfe \x1b[31m", "no end"}
	for _, text := range want[:3] {
		l.raw(stamp + " stdout F " + text + "\n")
	}
	l.raw(stamp + " stdout P no end\n")
	for _, query := range []string{"at=start", "at=end&before=true"} {
		assert.Equal(t, want, texts(l.window(query).Lines), query)
	}
	assert.Len(t, l.search("match=return$").Items, 1)
	assert.Len(t, l.search("match="+url.QueryEscape(`^\x00`)).Items, 1)
}

func TestALongLineIsCutAndReadInParts(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	for i := range 200 { // 3 MB
		l.raw(fmt.Sprintf("%s stdout P %04d%s\n", stamp, i, strings.Repeat("y", 16<<10-4)))
	}
	l.raw(stamp + " stdout F end of it\n" + stamp + " stdout F next\n")
	for _, query := range []string{"at=start", "at=end&before=true"} {
		w := l.window(query)
		require.Len(t, w.Lines, 2, query)
		assert.Len(t, w.Lines[0].Text, logapi.LineBytes)
		assert.Equal(t, "0000", string(w.Lines[0].Text[:4]))
		assert.Equal(t, int64(200*16<<10+len("end of it")), w.Lines[0].Bytes)
		assert.Zero(t, w.Lines[1].Bytes)
	}
	var all []byte
	for at := int64(0); ; {
		w := l.window(fmt.Sprintf("lines=1&longest=%d&at=%d", logapi.WindowBytes, at))
		require.Len(t, w.Lines, 1)
		assert.LessOrEqual(t, len(w.Lines[0].Text), logapi.WindowBytes)
		assert.Equal(t, at > 0, w.Lines[0].Continued)
		all = append(all, w.Lines[0].Text...)
		if at = w.To; w.Lines[0].Bytes == 0 {
			break
		}
	}
	assert.Len(t, all, 200*16<<10+len("end of it"))
	assert.True(t, bytes.HasSuffix(all, []byte("end of it")))
	m := l.search("match=end")
	assert.Empty(t, m.Items, "a search looks at the beginning of a line")
	assert.Len(t, l.search("match=0002").Items, 1)
}

func TestAWindowIsBounded(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	for range 400 {
		l.raw(stamp + " stdout F " + strings.Repeat("z", 9000) + "\n")
	}
	for _, query := range []string{"at=start", "at=end&before=true", "at=start&longest=1048576", "at=end&before=true&longest=1048576"} {
		w, size := l.window(query), 0
		for _, line := range w.Lines {
			size += len(line.Text)
		}
		assert.LessOrEqual(t, size, logapi.WindowBytes, query)
		assert.Greater(t, size, logapi.WindowBytes/2, query)
	}
}

func TestADamagedFrameIsAGap(t *testing.T) {
	l := newLab(t)
	l.print(3)
	l.window("at=end")
	size := l.store.find(uid, "app").disk()
	l.print(3)
	l.window("at=end")
	l.print(3)
	l.window("at=end")
	name := segmentPath(filepath.Join(l.folder, uid, "app"), 0)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[size+frameHeader+3] ^= 0xff
	require.NoError(t, os.WriteFile(name, data, 0o600))
	for _, query := range []string{"at=start", "at=end&before=true"} {
		w := l.window(query)
		assert.Equal(t, []string{"line 1", "line 2", "line 3", "line 7", "line 8", "line 9"}, texts(w.Lines), query)
		assert.Equal(t, 1, w.Gaps)
	}
	// A truncated file ends at the truncation.
	require.NoError(t, os.Truncate(name, size+10))
	assert.Equal(t, []string{"line 1", "line 2", "line 3"}, texts(l.window("at=start").Lines))
}

func TestATimeLeadsToItsFirstLine(t *testing.T) {
	l := newLab(t)
	l.print(5000)
	l.round()
	l.print(5000)
	at := func(n int) string {
		return url.QueryEscape(time.Date(2026, 3, 1, 12, 0, 0, n*1_000_000, time.UTC).Format(time.RFC3339Nano))
	}
	assert.Equal(t, []string{"line 7000", "line 7001"}, texts(l.window("lines=2&at="+at(7000)).Lines))
	assert.Equal(t, []string{"line 6999"}, texts(l.window("before=true&lines=1&at="+at(7000)).Lines))
	assert.Equal(t, []string{"line 1"}, texts(l.window("lines=1&at="+at(-9)).Lines))
	assert.Empty(t, l.window("at="+at(10_001)).Lines)
}

func TestAWindowWaitsForLines(t *testing.T) {
	l := newLab(t)
	l.print(1)
	end := l.window("at=end").To
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		f, err := os.OpenFile(l.current(), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, _ = f.WriteString("2026-03-01T12:00:01Z stdout F late\n")
			_ = f.Close()
		}
	}()
	assert.Equal(t, []string{"late"}, texts(l.window(fmt.Sprintf("wait=20s&at=%d", end)).Lines))
	<-printed
	assert.Empty(t, l.window("wait=1ms&at=end").Lines)
}

func TestASearchFindsPositionsStepByStep(t *testing.T) {
	l := newLab(t)
	l.print(20_000)
	l.round()
	l.print(2)
	place := map[string]int64{}
	for _, line := range l.forward(2000) {
		place[string(line.Text)] = line.At
	}
	var got []string
	for at := int64(0); ; {
		m := l.search(fmt.Sprintf("match=%s&limit=3&at=%d", url.QueryEscape("line .*77$"), at))
		assert.LessOrEqual(t, len(m.Items), 3)
		for _, x := range m.Items {
			got = append(got, string(x.Text))
			assert.Equal(t, place[string(x.Text)], x.At)
			assert.Equal(t, string(x.Text), string(x.Text[x.From:x.To]))
		}
		if at = m.To; at >= m.End {
			break
		}
	}
	assert.Len(t, got, 200)
	assert.Equal(t, "line 19977", got[199])
	assert.Empty(t, l.search("match=line&at=end").Items)

	// A search finds a match in the middle of a line, and returns the text around the match.
	l.raw(l.now.Format(time.RFC3339Nano) + " stdout F " + strings.Repeat("-", 5000) + "needle" + strings.Repeat("+", 5000) + "\n")
	m := l.search("match=needle")
	require.Len(t, m.Items, 1)
	assert.Len(t, m.Items[0].Text, excerptBytes)
	assert.Equal(t, "needle", string(m.Items[0].Text[m.Items[0].From:m.Items[0].To]))
}

func TestASearchEndsInTimeAndWithItsCaller(t *testing.T) {
	l := newLab(t)
	l.print(60_000)
	l.round()
	x := l.store.find(uid, "app")
	q, err := readMatchQuery(url.Values{"match": {"absent|missing"}})
	require.NoError(t, err)
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	m, err := x.matches(t.Context(), q, clock)
	require.NoError(t, err)
	assert.Less(t, m.To, m.End, "it has its time")
	assert.Greater(t, m.To, m.From, "and gets on")
	steps := 0
	for ; m.To < m.End; steps++ {
		q.at = place{offset: m.To}
		m, err = x.matches(t.Context(), q, clock)
		require.NoError(t, err)
	}
	assert.GreaterOrEqual(t, steps, 3)

	gone, cancel := context.WithCancel(t.Context())
	q.at = place{}
	_, err = x.matches(gone, q, func() time.Time { cancel(); return now })
	require.ErrorIs(t, err, context.Canceled)
}

// large creates a log of the given size in MiB, without files of the kubelet.
func (l *lab) large(mib int) *stream {
	l.t.Helper()
	return large(l.t, l.store, filepath.Join(l.folder, uid, "app"), mib)
}

func large(t testing.TB, s *Store, dir string, mib int) *stream {
	t.Helper()
	s.add(uid, "app", "")
	x := s.streams[uid+"/app"]
	x.dir = dir
	x.loaded = true
	var b bytes.Buffer
	for n := 0; n < mib*4; n++ {
		b.Reset()
		for i := 0; b.Len() < 256<<10-100; i++ {
			fmt.Fprintf(&b, "2026-03-01T12:%02d:%02d.%09dZ stdout F epoch %d step %d loss 0.%d throughput 11831 img/s\n", n/60%60, n%60, i, n, i, i*7919%10007)
		}
		require.NoError(t, x.append(&source{id: 1}, b.Bytes()))
	}
	x.over = true
	return x
}

// The memory for a response doesn't depend on the size of the log.
func TestAWindowOfALargeLogTakesNoMoreMemory(t *testing.T) {
	taken := func(mib int) uint64 {
		l := newLab(t)
		x := l.large(mib)
		q, err := readWindowQuery(url.Values{"at": {"end"}, "before": {"true"}})
		require.NoError(t, err)
		before, after := runtime.MemStats{}, runtime.MemStats{}
		runtime.ReadMemStats(&before)
		_, err = x.window(t.Context(), q)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, big := taken(2), taken(12)
	assert.Less(t, big, 2*small+1<<20)
}

func TestAnAgentRefusesTheExpressionsThatTheServerRefuses(t *testing.T) {
	l := newLab(t)
	for _, view := range []string{"view=matches&", ""} {
		for _, match := range []string{"(" + strings.Repeat("ab", 20) + "){100}", strings.Repeat("a|", 200)} {
			w := ask(t, l, logapi.Path(uid, "app")+"?"+view+"match="+url.QueryEscape(match), "sesame")
			assert.Equal(t, http.StatusBadRequest, w.Code, match)
			assert.Contains(t, w.Body.String(), "write a shorter one", "the remedy")
		}
	}
}
