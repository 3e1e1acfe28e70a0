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
			var out strings.Builder
			require.NoError(t, choose(strings.NewReader("example.org/p "+dir+"\n"), &out))
			assert.Equal(t, want, out.String() == "example.org/p\n", "%s: %s", name, body)
		}
	}
}

func TestWhatIsKnownToBeConcurrentHereIsChosen(t *testing.T) {
	in := ""
	for _, dir := range []string{"ssh", "cluster", "services", "framework/controller", "scheduler/books", "scheduler/cell", "strictyaml"} {
		in += dir + " ../../pkg/" + dir + "\n"
	}
	var out strings.Builder
	require.NoError(t, choose(strings.NewReader(in), &out))
	assert.Equal(t, "ssh\ncluster\nservices\nframework/controller\nscheduler/books\n", out.String())
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	require.Error(t, choose(strings.NewReader("example.org/p\n"), nil))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("no Go\n"), 0o600))
	require.ErrorContains(t, choose(strings.NewReader("p "+dir+"\n"), nil), "a.go")
}
