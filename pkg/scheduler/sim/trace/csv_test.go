package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

func TestReadCSVReadsWhatWriteCSVWrote(t *testing.T) {
	tr, err := trace.Generate(64, 3)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, trace.WriteCSV(&b, tr.Jobs))
	jobs, err := trace.ReadCSV("jobs.csv", &b)
	require.NoError(t, err)
	assert.Equal(t, tr.Jobs, jobs)
}

func TestReadCSVTakesColumnsInAnyOrderAndIgnoresOthers(t *testing.T) {
	jobs, err := trace.ReadCSV("jobs.csv", strings.NewReader("\ufeffvc,user,job_id, arrival_s,duration_s,priority,pods,gpus_per_pod\r\n"+
		`"team, a",alice,7,0,60,-1,2,8`+"\r\n"))
	require.NoError(t, err)
	assert.Equal(t, []trace.Job{{ID: 7, Duration: 60, VC: "team, a", Priority: -1, Pods: 2, GPUsPerPod: 8}}, jobs)
	assert.Equal(t, 16, jobs[0].GPUs())
}

func TestReadCSVSaysWhereAMistakeIsAndWhatToDo(t *testing.T) {
	head := trace.Header() + "\n"
	for _, c := range []struct{ name, text, message, remedy string }{
		{"an empty file", "", "jobs.csv is empty", "the first line is " + trace.Header()},
		{"a missing column", "job_id,arrival_s\n", `jobs.csv:1: there is no column "duration_s"`, "the first line is " + trace.Header()},
		{"a column twice", "vc," + head, `jobs.csv:1: column "vc" occurs twice`, "name each column once"},
		{"a short line", head + "0,1,2,a,0,1,1\n1,2,3\n", "jobs.csv:3: 3 columns instead of 7", "every line has the columns of the first"},
		{"text for a number", head + "0,1,2,a,0,one,1\n", `jobs.csv:2: pods is "one"`, "write a whole number from 1 to 1048576"},
		{"a negative time", head + "0,-1,2,a,0,1,1\n", `jobs.csv:2: arrival_s is "-1"`, "write a whole number from 0 to 1099511627776"},
		{"a priority out of range", head + "0,1,2,a,1001,1,1\n", `jobs.csv:2: priority is "1001"`, "write a whole number from -1 to 1000"},
		{"no GPUs", head + "0,1,2,a,0,1,0\n", `jobs.csv:2: gpus_per_pod is "0"`, "write a whole number from 1 to 1048576"},
		{"no virtual cluster", head + "0,1,2,,0,1,1\n", "jobs.csv:2: vc is empty", "write the name of a virtual cluster"},
		{"an id twice", head + "4,1,2,a,0,1,1\n5,1,2,a,0,1,1\n4,1,2,a,0,1,1\n", "jobs.csv:4: job_id 4 is on line 2 already", "give each job a different id"},
		{"a quote in the middle", head + "4,1,2,a\"b,0,1,1\n", `jobs.csv:2: bare " in non-quoted-field`, "write comma-separated values; the first line is " + trace.Header()},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trace.ReadCSV("jobs.csv", strings.NewReader(c.text))
			require.EqualError(t, err, c.message)
			assert.Equal(t, c.remedy, hint.Of(err))
		})
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add(trace.Header() + "\n0,1,2,a,0,1,1\n")
	f.Add("\ufeffvc\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := trace.ReadCSV("jobs.csv", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, j := range jobs {
			assert.Positive(t, j.GPUs())
		}
	})
}
