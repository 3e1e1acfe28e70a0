package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPackageThatDoesSeveralThingsAtOnceIsChosen(t *testing.T) {
	for body, want := range map[string]bool{
		"func f() { go f() }":                            true,
		"func f(c <-chan int) {}":                        true,
		"import \"sync\"\nvar mu sync.Mutex":             true,
		"import \"sync/atomic\"\nvar n atomic.Int32":     true,
		"import \"golang.org/x/sync/errgroup\"":          true,
		"import \"testing/synctest\"":                    true,
		"import \"net/http/httptest\"":                   true,
		"func f(t *testing.T) { t.Parallel() }":          true,
		"func f() { defer f() }":                         false,
		"import \"syncopation\"\n// go f() and chan int": false,
		"import \"net/http\"\nvar s = `go f()`":          false,
	} {
		for _, name := range []string{"a.go", "a_test.go"} { // what its tests do counts
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "other.go"), []byte("package p\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("package p\n"+body+"\n"), 0o600))
			chosen, err := concurrent(strings.NewReader("example.org/p " + dir + "\n"))
			require.NoError(t, err)
			assert.Equal(t, want, len(chosen) == 1, "%s: %s", name, body)
		}
	}
}

func TestWhatIsKnownToBeConcurrentHereIsChosen(t *testing.T) {
	in := ""
	for _, dir := range []string{"ssh", "cluster", "services", "job/controller", "scheduler/gangs", "scheduler/cell", "strictyaml"} {
		in += dir + " ../../pkg/" + dir + "\n"
	}
	chosen, err := concurrent(strings.NewReader(in))
	require.NoError(t, err)
	assert.Equal(t, []string{"ssh", "cluster", "services", "job/controller", "scheduler/gangs"}, chosen)
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	_, err := concurrent(strings.NewReader("example.org/p\n"))
	require.Error(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("no Go\n"), 0o600))
	_, err = concurrent(strings.NewReader("p " + dir + "\n"))
	require.ErrorContains(t, err, "a.go")
}
