package logstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// A user reported this error: with seq 300000; sleep 30, the kubelet rotates the log and then returns no output.
func TestWhatTheKubeletRotatedIsStillThere(t *testing.T) {
	l := newLab(t)
	l.print(300_000)
	l.round()
	l.rotate()
	l.round()
	l.squeeze(1, 0)
	l.whole()
	l.now = l.now.Add(time.Minute)
	l.round()
	l.round()
	l.restart()
	l.whole()
}

func TestALogIsWholeWhateverHappensInBetween(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l, r := newLab(t), rand.New(rand.NewPCG(seed, 1))
			l.print(1)
			l.whole() // an agent that comes late can't know what it missed
			for range 60 {
				switch r.IntN(8) {
				case 0, 1:
					l.print(r.IntN(3000))
				case 2:
					l.print(r.IntN(5))
				case 3:
					l.rotate()
				case 4:
					l.squeeze(len(l.rotated())-1, 99) // nothing is removed that wasn't read
				case 5:
					l.round() // all is read; rotated files may be removed
					l.round()
					l.squeeze(len(l.rotated())-1, 2)
				case 6:
					l.restart()
				case 7:
					l.now = l.now.Add(time.Duration(r.IntN(20)) * time.Second)
					l.round()
				}
			}
			l.whole()
			l.restart()
			l.whole()
		})
	}
}

func TestAKillAtAnyByteOfAWriteLosesAndDoublesNothing(t *testing.T) {
	l := newLab(t)
	l.print(500)
	l.whole()
	name := segmentPath(filepath.Join(l.folder, uid, "app"), 0)
	before, err := os.ReadFile(name)
	require.NoError(t, err)
	l.print(50)
	l.whole()
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	for n := len(before); n <= len(after); n++ {
		require.NoError(t, os.WriteFile(name, after[:n], 0o600))
		l.restart()
		l.whole()
	}
	// A power failure may leave pages of zeros.
	zeroes := append(append([]byte{}, after[:len(before)+70]...), make([]byte, len(after)-len(before)-70)...)
	require.NoError(t, os.WriteFile(name, zeroes, 0o600))
	l.restart()
	l.whole()
}

func TestALogIsReadToItsEndWhenItsPodIsRemoved(t *testing.T) {
	l := newLab(t)
	l.print(1000)
	l.round()
	l.print(1000)
	require.NoError(t, os.RemoveAll(filepath.Join(l.pods, podDir)))
	l.whole()
	l.now = l.now.Add(time.Minute)
	l.round()
	l.round()
	l.restart()
	l.whole()
}

func TestTheOldestLinesGoAndItIsSaidHowMany(t *testing.T) {
	l := newLab(t)
	l.limits.PerTask = 4 << 20
	l.restart()
	l.print(300_000)
	l.round()
	start, _, lines := l.all(pageMost)
	assert.Equal(t, fmt.Sprintf("line %d", l.lines), lines[len(lines)-1])
	first := l.lines - len(lines)
	size, err := os.Stat(l.current())
	require.NoError(t, err)
	assert.InDelta(t, size.Size(), start+l.limits.PerTask, 2<<20, "as much is kept as is allowed")
	assert.Equal(t, fmt.Sprintf("line %d", first+1), lines[0])
	data, err := os.ReadFile(l.current())
	require.NoError(t, err)
	assert.Equal(t, first, strings.Count(string(data[:start]), "\n"), "the bytes before the first line are those that are missing")

	// Dropped lines aren't read again, although the kubelet still stores them.
	l.rotate()
	l.print(10)
	l.restart()
	l.round()
	_, _, again := l.all(pageMost)
	assert.LessOrEqual(t, len(again), len(lines)+10)
	assert.Equal(t, fmt.Sprintf("line %d", l.lines), again[len(again)-1])
}

// The store drops the oldest lines during a request.
func TestLinesThatAreDroppedMeanwhileAreNotMissingInSilence(t *testing.T) {
	l := newLab(t)
	l.limits.PerTask = 4 << 20
	l.restart()
	l.print(300_000)
	l.round()
	x := l.store.find(uid, "app")
	require.NotNil(t, x)
	segments := x.segments
	require.Greater(t, len(segments), 1)
	q := Query{Tail: -1, Most: pageMost}
	p, err := x.page(q)
	require.NoError(t, err)
	require.NoError(t, os.Remove(segmentPath(x.dir, segments[0].start)))
	require.ErrorIs(t, p.each(q, func(logapi.Line) error { return nil }), os.ErrNotExist, "the answer is cut off, and asked for again")

	p, err = x.page(q)
	require.NoError(t, err)
	assert.Equal(t, segments[0].end, p.Start, "where the log begins now")
	require.NoError(t, p.each(q, func(logapi.Line) error { return nil }))
}

func TestAMachineIsNotFilled(t *testing.T) {
	l := newLab(t)
	l.limits.PerTask = 2 << 20
	l.restart()
	l.print(100_000)
	l.round()
	used := l.store.used
	require.Positive(t, used)
	l.limits.Total = used / 2
	l.restart()
	l.round()
	assert.LessOrEqual(t, l.store.used, l.limits.Total)
	_, _, lines := l.all(pageMost)
	assert.Equal(t, fmt.Sprintf("line %d", l.lines), lines[len(lines)-1])

	l.limits.Total = 1
	require.NoError(t, os.RemoveAll(filepath.Join(l.pods, podDir)))
	l.restart()
	l.round()
	l.round()
	assert.Nil(t, l.store.find(uid, "app"), "those of pods that are gone go altogether")
	assert.NoDirExists(t, filepath.Join(l.folder, uid))
}

func TestALogGoesWhenItIsOldAndItsPodGone(t *testing.T) {
	l := newLab(t)
	l.print(10)
	l.round()
	l.now = l.now.Add(2 * l.limits.Age)
	l.round()
	l.whole()
	require.NoError(t, os.RemoveAll(filepath.Join(l.pods, podDir)))
	l.round()
	l.now = l.now.Add(time.Minute)
	l.round()
	l.now = l.now.Add(l.limits.Age / 2)
	l.round()
	l.whole()
	l.now = l.now.Add(l.limits.Age)
	l.round()
	assert.Nil(t, l.store.find(uid, "app"))
}

func TestLinesThatWereRemovedUnseenAreAGap(t *testing.T) {
	l := newLab(t)
	l.print(10)
	l.whole()
	for range 6 { // while no agent runs
		l.rotate()
		l.print(10)
	}
	l.squeeze(5, 4)
	l.restart()
	_, gaps, lines := l.all(pageMost)
	assert.Equal(t, 1, gaps)
	assert.Equal(t, "line 1", lines[0])
	assert.Equal(t, "line 70", lines[len(lines)-1])
	assert.Len(t, lines, 60)
	l.restart()
	_, gaps, again := l.all(pageMost)
	assert.Equal(t, 1, gaps)
	assert.Equal(t, lines, again)
}

func TestAnAgentThatComesLateSaysThatItMayHaveMissedLines(t *testing.T) {
	l := newLab(t)
	for range rotatedKept {
		l.print(10)
		l.rotate()
	}
	_, gaps, lines := l.all(pageMost)
	assert.Equal(t, 1, gaps)
	assert.Len(t, lines, 10*rotatedKept)
}

func TestPartsOfALongLineAreOneLine(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	part := strings.Repeat("x", 16<<10)
	for range 40 {
		l.raw(stamp + " stdout P " + part + "\n")
	}
	l.raw(stamp + " stderr F between\n" + stamp + " stdout F end\n")
	_, _, lines := l.all(pageMost)
	assert.Equal(t, []string{"between", strings.Repeat(part, 40) + "end"}, lines)
}

// containerd 2.4 splits a line when the kubelet rotates the log of a fast program.
func TestALineThatARotationCutsIsOneLine(t *testing.T) {
	l := newLab(t)
	l.raw("2026-03-01T12:00:01.1Z stdout F 14436430\n2026-03-01T12:00:01.2Z stdout P 1\n")
	l.round()
	l.rotate()
	l.raw("2026-03-01T12:00:01.3Z stdout F 4436431\n2026-03-01T12:00:01.4Z stdout F 14436432\n")
	want := []string{"14436430", "14436431", "14436432"}
	for _, most := range []int64{1, pageMost} {
		_, _, lines := l.all(most)
		assert.Equal(t, want, lines)
	}
	_, lines := l.page(l.query("tail=2"))
	assert.Equal(t, want[1:], lines)
}

func TestTheEndOfAFileComesBeforeItsSuccessor(t *testing.T) {
	l := newLab(t)
	l.raw("2026-03-01T12:00:01.1Z stdout F a\n")
	l.round()
	l.rotate()
	name := l.rotated()[0]
	l.raw("2026-03-01T12:00:01.3Z stdout F c\n")
	x := l.store.find(uid, "app")
	require.NoError(t, x.ingest(true))
	assert.True(t, x.isUnsettled(), "containerd may not be done with the file before")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("2026-03-01T12:00:01.2Z stdout F b\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, lines := l.all(pageMost)
	assert.Equal(t, []string{"a", "b", "c"}, lines)
}

func TestALastLineWithoutEndIsShown(t *testing.T) {
	l := newLab(t)
	l.raw("2026-03-01T12:00:01.1Z stdout F a\n2026-03-01T12:00:01.2Z stdout P no end\n")
	_, _, lines := l.all(pageMost)
	assert.Equal(t, []string{"a", "no end"}, lines)
	// A client that follows the log waits for the rest of the line.
	p, err := l.store.await(t.Context(), l.store.find(uid, "app"), Query{Tail: -1, Most: pageMost}, time.Nanosecond)
	require.NoError(t, err)
	assert.Equal(t, p.Next, p.End)
}

func TestALineWithoutEndTakesNoMemoryWithoutEnd(t *testing.T) {
	l := newLab(t)
	stamp := l.now.Format(time.RFC3339Nano)
	for range 200 {
		l.raw(stamp + " stdout P " + strings.Repeat("\x00\xff", 8<<10) + "\n")
	}
	_, _, lines := l.all(pageMost)
	total := 0
	for _, text := range lines {
		assert.LessOrEqual(t, len(text), maxText+16<<10)
		total += len(text)
	}
	assert.Equal(t, 200*16<<10, total)
}

func TestOnlyTheKubeletsOwnFilesAreRead(t *testing.T) {
	l := newLab(t)
	l.print(3)
	secret := filepath.Join(t.TempDir(), "secret")
	stamp := l.now.Format(time.RFC3339Nano)
	require.NoError(t, os.WriteFile(secret, []byte(stamp+" stdout F of the machine\n"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(l.container(), "1.log")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(l.container(), "2.log"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(l.container(), "3.log"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(l.container(), "notes.txt"), []byte(stamp+" stdout F other\n"), 0o600))
	require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(l.pods, podDir, "linked")))
	require.NoError(t, os.Symlink(filepath.Join(l.pods, podDir), filepath.Join(l.pods, "pai-jobs_other_"+strings.Replace(uid, "7", "8", 1))))
	require.NoError(t, os.MkdirAll(filepath.Join(l.pods, "kube-system_etcd_"+strings.Replace(uid, "7", "9", 1), "etcd"), 0o755))
	l.round()
	l.whole()
	assert.Len(t, l.store.streams, 1)
}

func TestADamagedLogDoesNotKeepOthersFromBeingKept(t *testing.T) {
	l := newLab(t)
	l.raw("this is no line of a log\n")
	other := filepath.Join(l.pods, podDir, "second")
	require.NoError(t, os.MkdirAll(other, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "0.log"), []byte(l.now.Format(time.RFC3339Nano)+" stdout F fine\n"), 0o640))
	l.round()
	assert.Len(t, l.store.told, 1)
	x := l.store.find(uid, "second")
	p, err := l.store.await(t.Context(), x, Query{Tail: -1, Most: pageMost}, 0)
	require.NoError(t, err)
	assert.Positive(t, p.End)
}

func TestAFrameThatRotsIsLeftOut(t *testing.T) {
	l := newLab(t)
	l.print(10)
	l.whole()
	l.print(10)
	l.whole()
	l.print(10)
	l.whole()
	name := segmentPath(filepath.Join(l.folder, uid, "app"), 0)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[frameHeader+3] ^= 0xff
	require.NoError(t, os.WriteFile(name, data, 0o600))
	l.restart()
	_, _, lines := l.all(pageMost)
	assert.Equal(t, "line 11", lines[0])
	assert.Len(t, lines, 20)
}

func TestWhatIsAskedForIsFound(t *testing.T) {
	l := newLab(t)
	l.print(20_000)
	l.round()
	l.now = l.now.Add(time.Hour)
	l.print(3)
	for ask, want := range map[string][]string{
		"tail=2":                        {"line 20002", "line 20003"},
		"tail=0":                        nil,
		"since=30m":                     {"line 20001", "line 20002", "line 20003"},
		"since=30m&match=2$":            {"line 20002"},
		"match=line+1(2|3)34$":          {"line 1234", "line 1334"},
		"match=line+7$&offset=99999999": nil,
	} {
		_, lines := l.page(l.query(ask))
		assert.Equal(t, want, lines, ask)
	}
}

func TestOneOfTheTwoStreamsIsRead(t *testing.T) {
	l := newLab(t)
	l.raw(l.now.Format(time.RFC3339Nano) + " stderr F the first\n")
	for range 5 {
		l.print(4000)
		l.raw(l.now.Format(time.RFC3339Nano) + " stderr P half \n")
		l.round()
		l.raw(l.now.Format(time.RFC3339Nano) + " stderr F done\n")
		l.round()
	}
	done := []string{"half done", "half done", "half done", "half done", "half done"}
	for ask, want := range map[string][]string{
		"stream=stderr":                      append([]string{"the first"}, done...),
		"stream=stderr&tail=2":               done[:2],
		"stream=stderr&tail=100":             append([]string{"the first"}, done...),
		"stream=stdout&tail=2":               {"line 19999", "line 20000"},
		"tail=2":                             {"line 20000", "half done"},
		"stream=stdout&match=line+1(2|3)34$": {"line 1234", "line 1334"},
		"stream=stderr&match=line+1(2|3)34$": nil,
	} {
		_, lines := l.page(l.query(ask))
		assert.Equal(t, want, lines, ask)
	}
}
