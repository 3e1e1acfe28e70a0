package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestTheListOfConformanceTests(t *testing.T) {
	list, err := os.ReadFile("testdata/conformance.yaml") // some tests that e2e.test of v1.36.3 listed
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"[sig-api-machinery] API priority and fairness should support FlowSchema API operations [Conformance]",
		"[sig-node] Containers should be able to override the image's default arguments (container cmd) [NodeConformance] [Conformance]",
		"[sig-api-machinery] Garbage collector should keep the rc around until all its pods are deleted if the deleteOptions says so [Serial] [Conformance]",
	}
	if got := namesOf(string(list)); !slices.Equal(got, want) {
		t.Errorf("the names are %q", got)
	}
}

func TestTestsThatMustRunAloneComeLast(t *testing.T) {
	tests := []string{"[sig-a] x [Serial] y [Conformance]"}
	for i := range chunk + 1 {
		tests = append(tests, fmt.Sprintf("[sig-a] %d [Conformance]", i))
	}
	got := parts(tests, map[string]float64{"[sig-a] 0 [Conformance]": 1})
	if len(got) != 2 || len(got[0]) != chunk || !slices.Equal(got[1], tests[:1]) || slices.Contains(got[0], tests[1]) {
		t.Errorf("the parts are %q", got)
	}
}

func TestTheReportOfGinkgo(t *testing.T) {
	file, err := os.Open("testdata/ginkgo.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := readSpecs(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []spec{{"[sig-node] Containers should be able to override the image's default arguments (container cmd) [NodeConformance] [Conformance]", "passed", 0}}
	if !slices.Equal(got, want) {
		t.Errorf("the results are %+v", got)
	}
}
