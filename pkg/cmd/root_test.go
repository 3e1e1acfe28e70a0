package cmd

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Each run of paictl creates all commands, even if it uses only one of them. Therefore the creation must not read large data, such as the
// embedded source.
func TestTheCommandTreeIsSmall(t *testing.T) {
	f := cmdutil.New("v1.0.0")
	NewCmdRoot(f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	NewCmdRoot(f)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "bytes allocated")
}

func TestAnErrorWithACodeOfItsOwnIsShownAlthoughTheRunWasCancelled(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"nonsense":                 {cmdutil.ExitUsage, "unknown command"},
		"image --nope":             {cmdutil.ExitUsage, "there is no flag --nope"},
		"rules validate /no/where": {cmdutil.ExitCancelled, "paictl: cancelled"},
	} {
		io, _, _, said := iostreams.Test()
		f := cmdutil.New("v0.0.0-test")
		f.IO = io
		assert.Equal(t, want.code, Main(cancelled, f, strings.Fields(args)), args)
		assert.Contains(t, said.String(), want.text, args)
	}
}

// BenchmarkCommandTree measures the work that each run of paictl does before it knows which command to run.
func BenchmarkCommandTree(b *testing.B) {
	f := cmdutil.New("v1.0.0")
	b.ReportAllocs()
	for b.Loop() {
		NewCmdRoot(f)
	}
}
