package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/audit"
)

var errWrong, errAway = errors.New("wrong"), errors.New("away")

// keeper is a Poster that keeps records in memory. It fails while away is true, and rejects records with the verb "bad".
type keeper struct {
	mu   sync.Mutex
	away bool
	kept map[string]bool
}

func (k *keeper) SaveAudit(_ context.Context, records []audit.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.away {
		return errAway
	}
	for _, r := range records {
		if r.Verb == "bad" {
			return errWrong
		}
	}
	for _, r := range records {
		k.kept[r.ID] = true
	}
	return nil
}

func (k *keeper) set(away bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = away
}

func (k *keeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept)
}

func TestRecordsArePrintedAtOnceAndKeptInTheEnd(t *testing.T) {
	var printed bytes.Buffer
	log := slog.New(slog.DiscardHandler)
	k := &keeper{kept: map[string]bool{}, away: true}
	s := audit.NewSink(audit.NewLines(&printed, log), k, func(err error) bool { return errors.Is(err, errWrong) }, log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for i := range 1200 {
		verb := "stop"
		if i == 700 {
			verb = "bad"
		}
		s.Write(ctx, audit.Record{ID: fmt.Sprint("record-", i), Verb: verb})
	}
	assert.Equal(t, 1200, strings.Count(printed.String(), "\n"), "whoever keeps them")
	k.set(false)
	require.Eventually(t, func() bool { return k.count() == 1199 }, 10*time.Second, 10*time.Millisecond)
	waiting, lost := s.Waiting()
	assert.Zero(t, waiting)
	assert.Zero(t, lost)

	k.set(true)
	s.Write(ctx, audit.Record{ID: "last", Verb: "stop"})
	require.Eventually(t, func() bool { n, _ := s.Waiting(); return n == 1 }, time.Minute, time.Millisecond)
	k.set(false)
	cancel()
	require.NoError(t, <-done)
	assert.Equal(t, 1200, k.count(), "what is left goes when the program ends")
}

func TestWhatIsTooMuchIsCounted(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	s := audit.NewSink(audit.NewLines(&bytes.Buffer{}, log), &keeper{}, func(error) bool { return false }, log)
	for i := range 10_003 {
		s.Write(t.Context(), audit.Record{ID: fmt.Sprint(i)})
	}
	waiting, lost := s.Waiting()
	assert.Equal(t, 10_000, waiting)
	assert.Equal(t, 3, lost)
}

func TestWhoKnocksOftenDoesNotFillTheAudit(t *testing.T) {
	var printed bytes.Buffer
	log := slog.New(slog.DiscardHandler)
	s := audit.NewSink(audit.NewLines(&printed, log), &keeper{}, func(error) bool { return false }, log)
	now := time.Unix(1_800_000_000, 0)
	write := func(r audit.Record) int {
		before := strings.Count(printed.String(), "\n")
		r.ID, r.Time, r.Kind = "x", now, "token"
		s.Write(t.Context(), r)
		return strings.Count(printed.String(), "\n") - before
	}
	knock := func(from string) int {
		return write(audit.Record{Address: from, Verb: "sign-in", Outcome: audit.Failed, Status: 400, Detail: map[string]string{"way": "password"}})
	}
	written := 0
	for i := range 1000 {
		written += knock(fmt.Sprintf("2001:db8::%x", i))
	}
	assert.Equal(t, 20, written, "addresses of one network are one")
	assert.Equal(t, 1, knock("10.0.0.1"), "another's is written")
	now = now.Add(time.Second)
	assert.Equal(t, 1, knock("2001:db8::1"))
	assert.Contains(t, printed.String(), `"left-out":"980"`)
	assert.Equal(t, 980, s.Dropped())

	written = 0
	for range 1000 {
		written += write(audit.Record{Actor: "mallory", Verb: "stop", Outcome: audit.Refused, Status: 403})
	}
	assert.Equal(t, 20, written, "who is signed in fills it no sooner")
	for _, r := range []audit.Record{{Actor: "mallory", Outcome: audit.Done, Status: 200}, {Actor: "mallory", Outcome: audit.Failed, Status: 503}, {Actor: "ann", Outcome: audit.Refused, Status: 403}} {
		assert.Equal(t, 1, write(r), "%+v", r)
	}
}

func TestStrangersPushNoOneElseOutOfWhatWaits(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	k := &keeper{kept: map[string]bool{}}
	s := audit.NewSink(audit.NewLines(&bytes.Buffer{}, log), k, func(error) bool { return false }, log)
	ctx, cancel := context.WithCancel(t.Context())
	s.Write(ctx, audit.Record{ID: "ann's", Actor: "ann", Outcome: audit.Done})
	for i := range 10_100 {
		s.Write(ctx, audit.Record{ID: fmt.Sprint(i), Address: fmt.Sprintf("10.0.%d.%d", i%5050/256, i%5050%256), Outcome: audit.Failed, Status: 400})
	}
	waiting, lost := s.Waiting()
	assert.Equal(t, 10_000, waiting)
	assert.Equal(t, 101, lost)
	cancel()
	require.NoError(t, s.Run(ctx))
	assert.True(t, k.kept["ann's"])
}
