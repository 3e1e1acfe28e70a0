package listing_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// framework returns a job that was submitted the given number of seconds after the epoch.
func framework(user, vc, name, uid string, second int, state v1.State, code int32) *v1.Framework {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{
		Name: v1.ObjectName(user, name), UID: types.UID(uid), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(second) * time.Second)),
		Labels: map[string]string{v1.LabelUser: user, v1.LabelVC: vc}, Annotations: map[string]string{v1.AnnotationJobName: name},
	}}
	if state == "" {
		return f
	}
	f.Status = &v1.FrameworkStatus{State: state, AttemptStatus: v1.FrameworkAttemptStatus{TaskRoleStatuses: []*v1.TaskRoleStatus{{Counts: v1.TaskCounts{Total: 1}}}}}
	if state == v1.Completed {
		f.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{Code: code}}
	}
	return f
}

// uid returns a UID whose first characters differ from those of other UIDs, as in the UIDs of the API server.
func uid(of ...any) string {
	sum := sha256.Sum256(fmt.Append(nil, of...))
	return hex.EncodeToString(sum[:16])
}

func brief(f *v1.Framework) *listing.Brief { return listing.NewBrief(f) }

// drawn returns a random job. There are few different users, virtual clusters, names and times.
func drawn(t *rapid.T) *v1.Framework {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	name := pick("name", "train", "eval", "Serve", "bert", "gpt")
	user := pick("user", "ann", "bob", "train")
	return framework(user, pick("vc", "vision", "nlp"), name, uid(user, name, rapid.IntRange(0, 2).Draw(t, "life")),
		rapid.IntRange(0, 5).Draw(t, "second"), rapid.SampledFrom([]v1.State{"", v1.AttemptPreparing, v1.AttemptRunning, v1.AttemptCompleted, v1.Completed}).Draw(t, "state"),
		rapid.SampledFrom([]int32{0, 1, -210}).Draw(t, "code"))
}

func drawnFilter(t *rapid.T) listing.Filter {
	f := listing.Filter{
		User: rapid.SampledFrom([]string{"", "", "ann", "train", "nobody"}).Draw(t, "of user"), VirtualCluster: rapid.SampledFrom([]string{"", "", "nlp"}).Draw(t, "of vc"),
		Keyword: rapid.SampledFrom([]string{"", "", "TRAIN", "nlp", "%"}).Draw(t, "keyword"), InName: rapid.SampledFrom([]string{"", "", "serve"}).Draw(t, "in name"),
		Phases: rapid.SliceOfN(rapid.SampledFrom(listing.Phases()), 0, 3).Draw(t, "phases"),
		Users:  rapid.SampledFrom([][]string{nil, nil, {"ann", "train", "nobody"}}).Draw(t, "of users"), VirtualClusters: rapid.SampledFrom([][]string{nil, nil, {"nlp", "none"}}).Draw(t, "of vcs"),
		Visible: rapid.SampledFrom([]*listing.Visibility{nil, nil, {All: true}, {User: "bob"}, {User: "ann", VCs: []string{"nlp"}}, {}}).Draw(t, "visible"),
	}
	if second := rapid.IntRange(-3, 5).Draw(t, "since"); second >= 0 {
		f.Since = epoch.Add(time.Duration(second) * time.Second)
	}
	return f
}

// After any changes, the index returns the same rows as a search through all jobs.
func TestAnIndexSaysWhatALookAtAllJobsWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := listing.NewIndex()
		jobs, pods := map[string]*v1.Framework{}, map[string]map[types.UID]listing.Start{}
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			f := drawn(t)
			pod := types.UID(rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "pod"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				jobs[f.Name] = f
				x.Put(brief(f))
			case 2:
				if have := jobs[f.Name]; have != nil && have.UID == f.UID {
					delete(jobs, f.Name)
				}
				x.Remove(brief(f), true)
			case 3:
				s := listing.Start{Placed: rapid.Bool().Draw(t, "placed"), Begun: rapid.Bool().Draw(t, "begun")}
				x.Pod(f.Name, pod, s, 0)
				if delete(pods[f.Name], pod); !s.Begun {
					if pods[f.Name] == nil {
						pods[f.Name] = map[types.UID]listing.Start{}
					}
					pods[f.Name][pod] = s
				}
			case 4:
				x.DeletePod(f.Name, pod, 0)
				delete(pods[f.Name], pod)
			}
			if rapid.IntRange(0, 3).Draw(t, "asked") == 0 {
				compare(t, x, jobs, pods)
			}
		}
		compare(t, x, jobs, pods)
	})
}

func compare(t *rapid.T, x *listing.Index, jobs map[string]*v1.Framework, pods map[string]map[types.UID]listing.Start) {
	var all []listing.Row
	for _, f := range jobs {
		starts := []listing.Start{}
		for _, s := range pods[f.Name] {
			starts = append(starts, s)
		}
		r := brief(f).Row(brief(f).State(starts, false, 0))
		r.Unplaced = brief(f).State(starts, true, 1).Phase == listing.Queued
		all = append(all, r)
		require.True(t, x.Has(string(f.UID)))
	}
	require.Equal(t, len(jobs), x.Len())
	f := drawnFilter(t)
	want, err := listing.Select(all, &f)
	require.NoError(t, err)
	got, err := x.Rows(f, 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
	// Reading page by page returns the same rows.
	var paged []listing.Row
	for n := rapid.IntRange(1, 4).Draw(t, "page"); ; {
		part, err := x.Rows(f, n)
		require.NoError(t, err)
		paged = append(paged, part...)
		if len(part) < n {
			break
		}
		f.Cursor = listing.NewCursor(&part[n-1])
	}
	require.Equal(t, names(want), names(paged))
	f.Cursor, f.Order, f.Descending = "", rapid.SampledFrom(api.Orders()).Draw(t, "order"), rapid.Bool().Draw(t, "descending")
	f.Sort(want)
	require.Equal(t, want, x.Sorted(f))
}

func names(rows []listing.Row) []string {
	out := []string{}
	for i := range rows {
		out = append(out, rows[i].User+"/"+rows[i].Name+" "+rows[i].UID)
	}
	return out
}

func TestHostileCursorsAreRefused(t *testing.T) {
	for _, text := range []string{"%%%", "-", "x", "-abc", "1-123456789", "0-a", "-1-a", "zzzzzzzzzzzzz-a", "zzzzzzzz-a", "1\x00-a", "1 -a"} {
		_, err := listing.ReadCursor(text)
		require.ErrorContains(t, err, "is not a cursor", "%q", text)
	}
	x := listing.NewIndex()
	_, err := x.Rows(listing.Filter{Cursor: "?"}, 1)
	require.Error(t, err)
}

func TestAJobThatComesAgainUnderItsNameIsAnotherOne(t *testing.T) {
	x := listing.NewIndex()
	x.Put(brief(framework("ann", "vision", "train", "1", 0, v1.AttemptRunning, 0)))
	x.Put(brief(framework("ann", "nlp", "train", "2", 5, "", 0)))
	x.Remove(brief(framework("ann", "vision", "train", "1", 0, v1.AttemptRunning, 0)), true) // the news of its end is late
	assert.False(t, x.Has("1"))
	rows, err := x.Rows(listing.Filter{}, 0)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.Equal(t, "2", rows[0].UID)
	rows, err = x.Rows(listing.Filter{VirtualCluster: "vision"}, 0)
	require.NoError(t, err)
	assert.Empty(t, rows)
}

func TestAListIsAsOldAsItsRowsSayWhileTheyChange(t *testing.T) {
	x := listing.NewIndex()
	state := func() string {
		rows, err := x.Rows(listing.Filter{}, 1)
		require.NoError(t, err)
		return rows[0].State
	}
	f := framework("ann", "vision", "train", "1", 0, v1.AttemptPreparing, 0)
	x.Pod(f.Name, "p", listing.Start{}, 0) // known before its Framework
	x.Put(brief(f))
	assert.Equal(t, "waiting", state())
	rows, err := x.Rows(listing.Filter{Phases: []listing.Phase{listing.Queued}}, 1)
	require.NoError(t, err)
	require.Len(t, rows, 1, "whether it is queued the scheduler knows")
	assert.True(t, rows[0].Unplaced)
	x.Pod(f.Name, "p", listing.Start{Placed: true}, 0)
	assert.Equal(t, "starting", state())
	x.Pod(f.Name, "p", listing.Start{Placed: true, Begun: true}, 0)
	f = framework("ann", "vision", "train", "1", 0, v1.AttemptRunning, 0)
	x.Put(brief(f))
	assert.Equal(t, "running", state())
	x.Put(brief(framework("ann", "vision", "train", "1", 0, v1.Completed, 1)))
	assert.Equal(t, "failed", state())
	assert.True(t, slices.Equal([]string{"ann/train 1"}, names(all(t, x, listing.Filter{Phases: []listing.Phase{listing.Failed}}))))
	assert.Empty(t, all(t, x, listing.Filter{Phases: []listing.Phase{listing.Running}}))
}

func all(t *testing.T, x *listing.Index, f listing.Filter) []listing.Row {
	t.Helper()
	rows, err := x.Rows(f, 0)
	require.NoError(t, err)
	return rows
}

func TestTheIndexCountsAUsersUnfinishedJobs(t *testing.T) {
	x := listing.NewIndex()
	for i, state := range []v1.State{"", v1.AttemptPreparing, v1.AttemptRunning, v1.Completed} {
		x.Put(brief(framework("ann", "vision", fmt.Sprint("job", i), fmt.Sprint(i), i, state, 0)))
	}
	x.Put(brief(framework("bob", "vision", "other", "9", 9, v1.AttemptRunning, 0)))
	jobs, tasks := x.Unfinished("ann")
	assert.Equal(t, 3, jobs)
	rows, err := x.Rows(listing.Filter{}, 0)
	require.NoError(t, err)
	want := 0
	for _, r := range rows {
		if r.User == "ann" && !listing.Phase(r.State).Done() {
			want += r.Tasks
		}
	}
	assert.Equal(t, want, tasks)
	jobs, tasks = x.Unfinished("eve")
	assert.Zero(t, jobs+tasks)
}
