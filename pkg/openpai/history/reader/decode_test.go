package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/openpai/history/historytest"
)

// bombBytes is the size of an unpacked bomb. It is smaller than the maximum size of an object.
const bombBytes = 30 << 20

// repeated returns a JSON list of about bombBytes bytes that repeats a text.
func repeated(text string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text+",", bombBytes/(len(text)+1)), ",") + "]"
}

// withTasks returns the object of a job whose tasks are compressed.
func withTasks(t *testing.T, j historytest.Job, attempt int32, roles string) string {
	t.Helper()
	return withPacked(t, j, attempt, pack([]byte(roles)))
}

func withPacked(t *testing.T, j historytest.Job, attempt int32, text string) string {
	t.Helper()
	s := j.Snapshot(attempt, 0)
	packed(text)(s)
	out, err := json.Marshal(s)
	require.NoError(t, err)
	return string(out)
}

// said returns a compressed role with one task, which has a long message.
var said = sync.OnceValue(func() string {
	return pack([]byte(`[{"name":"worker","taskStatuses":[{"state":"Completed","attemptStatus":{"completionStatus":{"diagnostics":"` + strings.Repeat("x", bombBytes) + `"}}}]}]`))
})

func TestWhatTakesTooMuchMemoryIsRefusedBeforeItIsRead(t *testing.T) {
	j := historytest.Job{User: "alice", Name: "bomb", VC: "vision", Submitted: epoch}
	for name, text := range map[string]string{
		"tasks of nothing, packed": withTasks(t, j, 0, `[{"name":"worker","taskStatuses":`+repeated("{}")+`}]`),
		"tasks that are none":      withTasks(t, j, 0, `[{"name":"worker","taskStatuses":`+repeated("null")+`}]`),
		"roles of nothing":         withTasks(t, j, 0, repeated("{}")),
		"tasks, not packed":        `{"status":{"attemptStatus":{"taskRoleStatuses":[{"taskStatuses":` + repeated("{}") + `}]}}}`,
		"roles to run":             `{"spec":{"taskRoles":` + repeated("0") + `}}`,
		"labels":                   `{"metadata":{"labels":{` + strings.Trim(repeated(`"a":""`), "[]") + `}}}`,
		"lists in lists":           strings.Repeat("[", bombBytes),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := decode([]byte(text))
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errMemory)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxDecoded))
		})
	}
	_, _, err := decode([]byte(withTasks(t, j, 0, `[{"taskStatuses":[`+strings.Repeat("{},", v1.MaxTasks)+`{}]}]`)))
	require.ErrorIs(t, err, errObject, "one task more than a job may have")
}

func TestNoElementIsLargerThanItWeighs(t *testing.T) {
	for name, size := range map[string]uintptr{
		"role": unsafe.Sizeof(v1.TaskRole{}), "container": unsafe.Sizeof(corev1.Container{}), "volume": unsafe.Sizeof(corev1.Volume{}), "task": unsafe.Sizeof(v1.TaskStatus{}),
	} {
		assert.LessOrEqual(t, size, uintptr(elementBytes), name)
	}
	assert.Equal(t, int64(2*24+3*elementBytes+fieldBytes), weigh([]byte(`{"{,[\"":[1,2],"b":",["}`)), "signs in texts count as texts")
}

func TestTheLargestJobIsRead(t *testing.T) {
	j := historytest.Job{User: "alice", Name: "large", VC: "vision", Submitted: epoch, Tasks: v1.MaxTasks, GPUs: 1}
	s := j.Snapshot(0, 0)
	roles := status(s, "attemptStatus")["taskRoleStatuses"].([]any)
	for _, task := range roles[0].(map[string]any)["taskStatuses"].([]any) {
		c := task.(map[string]any)["attemptStatus"].(map[string]any)["completionStatus"].(map[string]any)
		c["diagnostics"] = strings.Repeat("x", 1000)
		c["pod"] = map[string]any{"containers": []any{map[string]any{"name": "app", "code": 1, "reason": "Error"}, map[string]any{"name": "runtime", "code": 0, "reason": "Completed"}}}
	}
	text, err := json.Marshal(roles)
	require.NoError(t, err)
	f, weight, err := decode([]byte(withTasks(t, j, 0, string(text))))
	require.NoError(t, err)
	assert.Len(t, f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, v1.MaxTasks)
	assert.Greater(t, weight, int64(len(text)))
}

func TestJobsThatAreLargeUnpackedAreReadAFewAtATime(t *testing.T) {
	page := make([]row, 3)
	for i := range page {
		j := historytest.Job{User: "alice", Name: "bomb" + strconv.Itoa(i), VC: "vision", Submitted: epoch}
		page[i] = row{name: j.Key(), user: j.User, job: j.Name, state: "Completed", snapshot: withPacked(t, j, 0, said())}
		require.NoError(t, page[i].submitted.Scan(epoch))
		assert.Less(t, len(page[i].snapshot), 1<<20)
	}
	taker := newTaker(nil, into(nil))
	sizes := []int{}
	for left := page; len(left) > 0; {
		var jobs map[string]*job
		jobs, left = taker.read(left)
		sizes = append(sizes, len(jobs))
	}
	assert.Equal(t, []int{2, 1}, sizes)
	assert.Empty(t, taker.report.LeftOut)
	for i := range page {
		assert.Empty(t, page[i].snapshot, "nor is its text kept")
	}
}

// crowd is an archive that delays the writing of attempts until no other attempt fits into memory.
type crowd struct {
	archive.Store
	taker      *taker
	all        int64
	now, total atomic.Int64
	most       atomic.Int64
}

func (c *crowd) SaveAttempt(context.Context, *v1.Framework) error {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	for c.total.Add(1); c.total.Load() < c.all && c.taker.room.TryAcquire(1); time.Sleep(time.Millisecond) {
		c.taker.room.Release(1)
	}
	return nil
}

func TestAttemptsWaitUntilThereIsMemoryForThem(t *testing.T) {
	const attempts = 5
	d := historytest.New(t)
	j := historytest.Job{User: "alice", Name: "bombs", VC: "vision", Submitted: epoch, Attempt: attempts}
	d.Add(j)
	for i := range int32(attempts) {
		d.Exec(`UPDATE framework_history SET snapshot = $1 WHERE "attemptIndex" = $2`, withPacked(t, j, i, said()), i)
	}
	part, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "part.db"), Now: clock})
	require.NoError(t, err)
	taker := newTaker(source(t, d), into(place(t, archive.Options{})))
	c := &crowd{Store: part, taker: taker, all: attempts}
	taker.part = c
	require.NoError(t, taker.run(t.Context()))
	assert.Equal(t, int64(attempts), c.total.Load(), "all are written in the end")
	assert.Equal(t, int64(maxDecoded/(2*bombBytes)), c.most.Load())
	assert.True(t, taker.room.TryAcquire(maxDecoded), "what was written leaves its room")
}

func TestOutcomesOfAttemptsAreKeptAsFarAsThereIsMemory(t *testing.T) {
	d := historytest.New(t)
	j := historytest.Job{User: "alice", Name: "talks", VC: "vision", Submitted: epoch, Attempt: 2}
	d.Add(j)
	d.Exec(`UPDATE framework_history SET snapshot = jsonb_set(snapshot::jsonb, '{status,attemptStatus,completionStatus,diagnostics}', to_jsonb(repeat('x', $1)))::text`, bombBytes)
	s := source(t, d)
	page, err := s.page(t.Context(), "")
	require.NoError(t, err)
	jobs, _ := newTaker(s, into(nil)).read(page)
	require.Len(t, jobs, 1)
	given := 0
	require.NoError(t, s.earlier(t.Context(), jobs, func(int64, write) error { given++; return nil }))
	assert.Equal(t, 2, given, "attempts themselves are all taken")
	assert.Len(t, jobs[j.Key()].attempts, 2, "the last one, and one that says much")
}

func TestAPageEndsWhereItsTextsAreLarge(t *testing.T) {
	d := historytest.New(t)
	for n := range pageBytes/maxText + 5 {
		d.Add(historytest.Job{User: "alice", Name: "long" + strconv.Itoa(n), VC: "vision", Submitted: epoch})
	}
	d.Exec(`UPDATE frameworks SET "jobConfig" = repeat('x', $1)`, maxText)
	page, err := source(t, d).page(t.Context(), "")
	require.NoError(t, err)
	total := 0
	for i := range page {
		total += len(page[i].config) + len(page[i].snapshot)
	}
	assert.LessOrEqual(t, total, pageBytes)
	assert.Greater(t, total, pageBytes-2*maxText)
}

func TestUnpackedTextsEndAtTheLimit(t *testing.T) {
	j := historytest.Job{User: "alice", Name: "bomb", VC: "vision", Submitted: epoch}
	_, _, err := decode([]byte(withTasks(t, j, 0, string(bytes.Repeat([]byte{' '}, maxObject+1)))))
	require.ErrorIs(t, err, errObject)
}
