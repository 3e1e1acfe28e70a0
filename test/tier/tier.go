// Package tier keeps tests out of the gate that "make test" runs.
// In: a test and the reason. Out: a skip under "go test -short", which only the gate passes. CONTRIBUTING.md explains how to choose the tier of a
// test.
package tier

import "testing"

// SkipMore and SkipHosts are the beginnings of the skip reasons of tests that a later tier runs. hack/tier counts these skips and fails at any
// other skip in the gate, so that the gate runs the same tests on every machine.
const (
	SkipMore  = "make test-more runs it: "
	SkipHosts = "make test-hosts runs it: "
)

// More leaves a test to "make test-more". The reason names the need of the test, such as "an API server", or its duration.
func More(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip(SkipMore + reason)
	}
}

// Hosts leaves a test to "make test-hosts".
func Hosts(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip(SkipHosts + reason)
	}
}
