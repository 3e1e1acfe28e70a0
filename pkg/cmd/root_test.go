package cmd

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// Each run of paictl makes all commands, whatever it does: nothing large is read for that, such as the embedded source.
func TestTheCommandTreeIsSmall(t *testing.T) {
	f := cmdutil.New("v1.0.0")
	NewCmdRoot(f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	NewCmdRoot(f)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "bytes allocated")
}

// BenchmarkCommandTree is what each run of paictl does before it knows its command.
func BenchmarkCommandTree(b *testing.B) {
	f := cmdutil.New("v1.0.0")
	b.ReportAllocs()
	for b.Loop() {
		NewCmdRoot(f)
	}
}
