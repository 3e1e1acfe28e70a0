package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// held adds a task to the archive that has held GPUs from the time since. code is 0 if the task has succeeded, and -1003 if it was preempted.
func (w *world) held(user, vc, name string, gpus int32, opportunistic bool, since time.Time, long time.Duration, code int32) {
	w.t.Helper()
	begun, ended := metav1.NewTime(since.UTC().Truncate(time.Second)), metav1.NewTime(since.Add(long).UTC().Truncate(time.Second))
	uid := types.UID(fmt.Sprintf("held-%s-%s-%d", user, name, since.Unix()))
	pod := string(uid) + "/pod"
	end := &fv1.CompletionStatus{Code: code, Type: fv1.CompletionType{Name: "Succeeded"}}
	if code != 0 {
		end.Type.Name = fv1.Failed
	}
	task := &fv1.TaskStatus{StartTime: begun, State: fv1.Completed, TransitionTime: ended, CompletionTime: &ended, AttemptStatus: fv1.TaskAttemptStatus{StartTime: begun, CompletionTime: &ended, PodName: string(uid), PodUID: &pod,
		GPUs: &fv1.TaskGPUs{Count: gpus, Type: "H100", Opportunistic: opportunistic, Since: begun}, CompletionStatus: &fv1.TaskAttemptCompletionStatus{CompletionStatus: end}}}
	f := &fv1.Framework{ObjectMeta: metav1.ObjectMeta{Name: fv1.ObjectName(user, name), UID: uid, CreationTimestamp: begun, Labels: map[string]string{fv1.LabelUser: user, fv1.LabelVC: vc}, Annotations: map[string]string{fv1.AnnotationJobName: name}},
		Spec: fv1.FrameworkSpec{ExecutionType: fv1.ExecutionStart},
		Status: &fv1.FrameworkStatus{StartTime: begun, RunTime: &begun, CompletionTime: &ended, TransitionTime: ended, State: fv1.Completed,
			AttemptStatus: fv1.FrameworkAttemptStatus{StartTime: begun, CompletionTime: &ended, TaskRoleStatuses: []*fv1.TaskRoleStatus{{Name: "Worker_1", TaskStatuses: []*fv1.TaskStatus{task}}}}}}
	require.NoError(w.t, w.Store.SaveHolds(w.t.Context(), f))
}

// usage adds the GPU hours of two months to the archive.
func (w *world) usage() {
	w.t.Helper()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for i := range 60 {
		at := today.AddDate(0, 0, -i-1)
		w.held("ann", "speech", "pretrain", int32(4+i*5%9), false, at, 9*time.Hour, 0)
		w.held("bob", "speech", "sweep", 4, true, at.Add(3*time.Hour), time.Duration(3+i%4)*time.Hour, []int32{0, -1003}[i%2])
		if i%5 == 2 {
			w.held("ann", "vision", "segment", 8, false, at.Add(10*time.Hour), 2*time.Hour, 137)
		}
	}
}

func TestUsage(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/usage", "ann")
	b.has(".empty", "No GPU was held")
	day := time.Now().UTC().Truncate(24 * time.Hour)
	w.held("ann", "speech", "train", 8, false, day.AddDate(0, 0, -1), 2*time.Hour, 0)
	w.held("ann", "vision", "spot", 4, true, day.AddDate(0, 0, -2), time.Hour, -1003)
	w.held("ann", "vision", "wrong", 2, false, day.AddDate(0, 0, -3), time.Hour, 1)
	w.held("ann", "vision", "long-ago", 1, false, day.AddDate(0, 0, -40), time.Hour, 0)
	w.held("bob", "speech", "other", 100, false, day.AddDate(0, 0, -1), time.Hour, 0)

	// The page shows only the person's own hours, which are 16 + 4 + 2 in 30 days.
	b.do(chromedp.Navigate(w.URL + "/usage"))
	b.has(".totals", "22.0")
	b.shows("[...document.querySelectorAll('.totals dd b')].map(e => e.innerText).join() === '22.0,18.0,4.0,4.0,2.0'")
	b.shows("[...document.querySelectorAll('.rows tbody tr')].map(e => e.cells[0].innerText + '=' + e.cells[1].innerText).join() === 'speech=16.0,vision=6.0'")
	b.shows("document.querySelectorAll('.chart g').length === 30 && [...document.querySelectorAll('.chart g rect.guaranteed')].filter(e => e.height.baseVal.value > 0).length === 2")
	b.press(".segments button", "90 days")
	b.shows("location.search === '?span=90' && document.querySelectorAll('.chart g').length === 90")
	b.has(".totals", "23.0")
	b.press(".segments button", "Day")
	b.shows("document.querySelectorAll('.rows tbody tr').length === 4")
	b.menu("Copy as paictl")
	b.shows("/^paictl job usage --by day --since \\d{4}-\\d\\d-\\d\\d --user ann$/.test(window.copied)")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".top button", "CSV")
	b.shows("/^day,gpuHours,guaranteed,opportunistic,preempted,failed\\r\\n\\d{4}-\\d\\d-\\d\\d,16,16,0,0,0\\r\\n/.test(window.saved)")

	// The figures of a virtual cluster don't contain the names of other users, because the server denies the request for the names.
	b.do(chromedp.Navigate(w.URL + "/usage?of=vc:speech"))
	b.has(".totals", "116.0")
	b.press(".segments button", "Person")
	b.has(".problem", "only an administrator sees who used a virtual cluster")

	// An administrator sees the figures of all users.
	w.Group("browser-administrators", func(g *v1.GroupSpec) { g.Administrator = true })
	w.Person("rita", "browser-administrators")
	b.run("fetch('/api/v3/session', {method: 'DELETE'}).then(() => window.out = true)")
	b.shows("window.out")
	b.signIn(w, "/usage?of=all&by=user", "rita")
	b.has(".totals", "122.0")
	b.shows("[...document.querySelectorAll('.rows tbody tr')].map(e => e.cells[0].innerText).join() === 'bob,ann'")
	b.narrow(w, "/usage?of=all&by=user")
}
