package logs

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// keep puts a pod on a machine whose agent keeps the given lines as the pod's log.
func (f *fake) keep(uid types.UID, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		if p.UID == uid && p.Spec.NodeName == "" {
			p.Spec.NodeName = "n1"
		}
	}
	if f.kept[uid] == nil {
		f.kept[uid] = &keptLog{}
	}
	f.kept[uid].text += strings.Join(lines, "")
	f.changed.Broadcast()
}

var five = []string{at(1, "one"), at(2, "two"), at(2, "two again"), at(1, "the clock was set back"), at(5, "five")}

const fiveText = "one\ntwo\ntwo again\nthe clock was set back\nfive\n"

func TestALogComesFromTheAgentOfItsMachine(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.keep(f.pod("worker", 0, 0, "running"), five...) // the kubelet has rotated all of it away
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, fiveText, r.String())
	assert.Empty(t, r.problems)
	assert.Empty(t, f.tails, "the kubelet isn't asked")
	assert.Equal(t, 2, f.pages, "one question for each page")

	f.cut = 1
	o, r = options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, fiveText, r.String(), "a page that breaks off goes on where it did")

	o, r = options(all)
	o.Tail, o.Timestamps = 2, true
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, at(1, "the clock was set back")+at(5, "five"), r.String())
}

func TestLinesAreSearchedWhereverTheyLie(t *testing.T) {
	for name, kept := range map[string]bool{"agent": true, "kubelet": false} {
		t.Run(name, func(t *testing.T) {
			f, c := newFake(t, map[string]int32{"worker": 1})
			uid := f.pod("worker", 0, 0, "ended", five...)
			if kept {
				f.keep(uid, five...)
			}
			o, r := options(all)
			o.Match = regexp.MustCompile("two|o.e$")
			require.NoError(t, write(t.Context(), c, resolve(t, c), o))
			assert.Equal(t, "one\ntwo\ntwo again\n", r.String())
			o, r = options(all)
			o.Match, o.Tail = regexp.MustCompile("two|o.e$"), 2
			require.NoError(t, write(t.Context(), c, resolve(t, c), o))
			assert.Equal(t, "two\ntwo again\n", r.String(), "the last of those that fit")
		})
	}
}

func TestWhatIsMissingOfALogIsSaidOnce(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	uid := f.pod("worker", 0, 0, "running")
	f.keep(uid, append([]string{at(0, strings.Repeat("x", 3<<20))}, five...)...)
	f.kept[uid].start, f.kept[uid].gaps = len(at(0, ""))+3<<20, 1
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, fiveText, r.String())
	assert.Equal(t, []string{
		"worker[0]: 3 MiB of its log were dropped before the next line: 1 GiB are kept of a task's log (perTask of log-manager)",
		"worker[0]: some lines of its log may be missing: its machine may have removed them while log-manager didn't run",
	}, r.problems)
	o, r = options(all)
	o.Tail = 1
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Empty(t, r.problems, "nothing is missing of what was asked for")
}

func TestTheLogOfAPodThatIsGoneIsWhole(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 1, "ended", at(1, "second"))
	f.keep("old", five...)
	f.archive["worker/0/0/0"] = "five\n"
	f.history = &api.JobDetail{Job: api.Job{UID: "f"}, Attempts: []api.Attempt{
		{ID: 0, Tasks: []api.TaskAttempt{{Role: "worker", RoleObject: "worker", HasLog: true, Node: "n1", PodUID: "old"}}}}}
	o, r := options(Selection{Task: All, Attempt: All, Previous: true})
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, fiveText, r.String())
	assert.Empty(t, r.problems)
	f.history.Attempts[0].Tasks[0].Node = "n2" // a machine that has left
	o, r = options(Selection{Task: All, Attempt: 0})
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, "five\n", r.String())
	assert.Equal(t, []string{"worker[0]: its machine no longer has its log: this is the last part, from the archive"}, r.problems)
}

func TestAnEmptyLogWithoutAnAgentIsNotTakenForTheWhole(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 0, "running")
	f.open = map[types.UID]bool{}
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	require.Len(t, r.problems, 1)
	assert.Contains(t, r.problems[0], "worker[0]: its machine has no line of it: it printed nothing, or the machine removed it")
}

func TestFollowingTheAgentLosesNothingUntilTheJobHasEnded(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	uid := f.pod("worker", 0, 0, "running")
	f.keep(uid, at(1, "a"))
	o, r := options(all)
	o.Follow = true
	done := make(chan error, 1)
	j := resolve(t, c)
	go func() { done <- write(t.Context(), c, j, o) }()
	until := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(r.String(), text) }, time.Minute, 5*time.Millisecond, "%q", text)
	}
	until("| a\n")
	f.change(func() { f.cut = 1 })
	f.keep(uid, at(2, "b"), at(2, "c"), at(3, "d"), at(1, "e"))
	until("| e\n")
	f.keep(uid, at(9, "end"))
	f.pod("worker", 0, 0, "ended")
	f.change(func() {
		f.framework.Status.State = v1.Completed
		f.framework.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
	})
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("following goes on after the job has ended")
	}
	assert.Equal(t, "worker[0]| a\nworker[0]| b\nworker[0]| c\nworker[0]| d\nworker[0]| e\nworker[0]| end\n", r.String())
	assert.Empty(t, r.problems)
}

func TestAnAgentThatIsRenewedIsWaitedFor(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.keep(f.pod("worker", 0, 0, "ended", at(5, "five")), five...)
	f.away = func(page int) bool { return page == 1 || page == 3 }
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, fiveText, r.String())
	assert.Empty(t, r.problems)
	assert.Empty(t, f.tails, "the kubelet isn't asked")

	f.away = func(int) bool { return true }
	o, r = options(all)
	o.AwayFirst = time.Millisecond
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, "five\n", r.String())
	assert.Equal(t, []string{"worker[0]: its log is read from Kubernetes, which may have less of it: ask the job controller: the agent doesn't answer now"}, r.problems)
}

// A machine without network doesn't reject a connection. It just never responds.
func TestAMachineThatDoesNotAnswerIsSaidWhileItIsAsked(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.keep(f.pod("worker", 0, 0, "ended", at(5, "five")), five...)
	said := make(chan struct{})
	f.away = func(page int) bool {
		if page == 2 {
			<-said
		}
		return false
	}
	o, r := options(all)
	o.AwayTold = 50 * time.Millisecond
	tell := o.Problem
	o.Problem = func(err error) {
		tell(err)
		close(said)
	}
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, fiveText, r.String())
	assert.Equal(t, []string{"worker[0]: its log is not available now: no agent answers for its machine, n1"}, r.problems)
}

func TestALogWhoseRestIsLostIsAnErrorAfterTheOthers(t *testing.T) {
	for name, roles := range map[string]int32{"one": 1, "several": 2} {
		for _, follow := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				f, c := newFake(t, map[string]int32{"worker": roles})
				f.keep(f.pod("worker", 0, 0, "ended"), five...)
				if roles > 1 {
					f.pod("worker", 1, 0, "ended", at(9, "whole"))
				}
				f.away = func(page int) bool { return page > 1 }
				o, r := options(all)
				o.AwayRest, o.Follow = time.Millisecond, follow
				j := resolve(t, c)
				if follow {
					f.change(func() {
						f.framework.Status.State = v1.Completed
						f.framework.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
					})
				}
				err := write(t.Context(), c, j, o)
				require.Error(t, err)
				assert.Contains(t, r.String(), "two again\n")
				assert.NotContains(t, r.String(), "five")
				if roles > 1 {
					assert.Contains(t, r.String(), "whole\n")
				}
				assert.Contains(t, strings.Join(append(r.problems, err.Error()), "\n"), "worker[0]: the rest of its log doesn't arrive")
			})
		}
	}
}

func TestEachJumpInALogIsTold(t *testing.T) {
	line := func(text string) string { return at(0, strings.Repeat(text, 2<<10)) }
	size := len(line("x"))
	for _, tail := range []int64{-1, 1} {
		f, c := newFake(t, map[string]int32{"worker": 1})
		f.keep(f.pod("worker", 0, 0, "running"), line("1"))
		f.dropped = func(page int, k *keptLog) {
			switch page {
			case 2: // two lines came and went since the first page
				k.text += line("2") + line("3") + line("4")
				k.start = 3 * size
			case 3:
				k.text += line("5") + line("6")
				k.start = 5 * size
			case 4:
				k.text += line("7")
				k.gaps = 1
			}
		}
		o, r := options(all)
		o.Tail, o.Follow = tail, true
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		j := resolve(t, c)
		go func() { done <- write(ctx, c, j, o) }()
		require.Eventually(t, func() bool { return strings.Contains(r.String(), "7") }, time.Minute, 5*time.Millisecond)
		cancel()
		<-done
		var got []string
		for l := range strings.Lines(r.String()) {
			got = append(got, l[len("worker[0]| "):][:1])
		}
		assert.Equal(t, []string{"1", "4", "6", "7"}, got)
		require.Len(t, r.problems, 3)
		assert.Contains(t, r.problems[0], "KiB of its log were dropped before the next line")
		assert.Contains(t, r.problems[1], "KiB of its log were dropped before the next line")
		assert.Contains(t, r.problems[2], "some lines of its log may be missing")
	}
}
