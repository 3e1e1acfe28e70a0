// Package tier excludes tests from the gate that "make test" runs.
// In: a test and the reason. Out: a skip under "go test -short", which only the gate uses. CONTRIBUTING.md explains how to choose the tier of a
// test.
package tier

import "testing"

// SkipMore and SkipHosts begin the reason of a skip if a later tier runs the test. hack/tier counts these skips, and fails if the gate skips a test
// for any other reason. So the gate runs the same tests on every machine.
const (
	SkipMore  = "make test-more runs it: "
	SkipHosts = "make test-hosts runs it: "
)

// More skips a test in the gate; "make test-more" runs it. The reason names the need of the test, such as "an API server", or its duration.
func More(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip(SkipMore + reason)
	}
}

// Hosts skips a test in the gate; "make test-hosts" runs it. The reason is as in More.
func Hosts(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip(SkipHosts + reason)
	}
}
