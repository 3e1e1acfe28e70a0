package browser

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// handle runs the alert handler, which carries out requests, without any policies for alerts.
func (w *world) handle() {
	w.t.Helper()
	objects, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w.t, err)
	require.NoError(w.t, objects.Resource(actionsv1.Actions).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})) // of other tests
	policies, err := policy.Read([]byte(`{"limits":{"stopsPerHour":1,"stopsPerHourPerVirtualCluster":1,"machinesPerHour":1,"machinesOutPercent":10},"drainTimeout":"1m","keep":"24h","policies":[]}`))
	require.NoError(w.t, err)
	handler, err := alerthandler.New(alerthandler.Options{Config: w.cluster.Config, JobNamespace: kube.JobNamespace, Policies: policies, Log: slog.New(slog.DiscardHandler)})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = handler.Run(ctx); done <- struct{}{} }()
	go func() { handler.Lead(ctx); done <- struct{}{} }()
	w.t.Cleanup(func() { cancel(); <-done; <-done })
}

// request makes a request as root.
func (w *world) request(operation, machine, reason string, grace int) {
	w.t.Helper()
	a := w.Do("POST", "/api/v3/actions", w.tokens["root"], fmt.Sprintf(`{"operation":%q,"machine":%q,"reason":%q,"graceSeconds":%d}`, operation, machine, reason, grace))
	require.Equal(w.t, 201, a.Status, a.Body)
}

// An administrator takes a machine out of service on the machine's page, and follows the result.
func TestRequestsForMachines(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.machines(3)
	w.Person("root", "administrators")
	w.submit("ann", "train", "speech", 4)
	w.run("ann", "train")
	w.handle()
	cordoned := func() bool {
		n, err := w.cluster.Client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{})
		require.NoError(t, err)
		return n.Spec.Unschedulable
	}

	// The page lists the jobs that a drain would move, and shows the result of a dry run.
	b.signIn(w, "/machines?machine=gpu-1", "root")
	b.press(".requests button", "Drain")
	b.has("dialog .affected", "Jobs with tasks on this machine, which move elsewhere: 1")
	b.has("dialog .affected a", "ann/train")
	b.shows("document.activeElement.name === 'reason' && document.querySelector('dialog button[type=submit]').disabled")
	b.keys("a fan is loud")
	b.has("dialog .commands", "paictl node drain gpu-1 --reason 'a fan is loud'")
	b.press("dialog button[name=dry]", "Dry run")
	b.has("dialog .outcome", "dry run: it would cordon gpu-1")
	b.shows("!document.querySelector('dialog button[type=submit]').disabled")
	assert.False(t, cordoned())
	b.press("dialog button", "Close")
	b.shows("!document.querySelector('dialog[open]')")

	// A machine is cordoned with the keyboard alone.
	b.run("document.querySelector('.drawer').focus()")
	b.keys("c")
	b.has("dialog h2", "Cordon gpu-1?")
	b.keys("a fan is loud" + kb.Enter)
	b.has("dialog .outcome", "gpu-1 is cordoned")
	assert.True(t, cordoned())
	b.press("dialog button", "Close")
	b.has(".drawer .note", "Cordoned by root: a fan is loud")
	b.has(".requests .steps", "Succeeded")
	b.has("tr[data-machine=gpu-1]", "cordoned")

	// A request is canceled during its grace period.
	b.press(".requests button", "Uncordon")
	b.fill("dialog [name=reason]", "the fan is new")
	b.fill("dialog [name=grace]", "3600")
	b.has("dialog .commands", "--grace 3600s")
	b.press("dialog button[type=submit]", "Uncordon")
	b.has("dialog .outcome", "In its grace")
	b.press("dialog button", "Close")
	b.press(".steps button", "Withdraw")
	b.fill("dialog [name=reason]", "not today")
	b.press("dialog button[type=submit]", "Withdraw")
	b.has(".steps", "canceled: not today (root)")
	assert.True(t, cordoned())

	// The list of machines offers the same operations. An error is shown with its code and the id of its request.
	b.press(".drawer button", "")
	b.run("document.querySelector('tr[data-machine=gpu-2] [aria-haspopup]').click()")
	b.press("[role=menuitem]", "Drain…")
	b.has("dialog h2", "Drain gpu-2?")
	require.NoError(t, w.cluster.Client.CoreV1().Nodes().Delete(t.Context(), "gpu-2", metav1.DeleteOptions{}))
	b.fill("dialog [name=reason]", "x")
	b.press("dialog button[type=submit]", "Drain")
	b.has("dialog .problem", "NoMachineError")
	b.shows("/Request\\s+[A-Z0-9]{26}/.test(document.querySelector('dialog .problem').innerText)")
	b.press("dialog button", "Cancel")

	// The administration page lists all requests. Its address contains the filters.
	b.do(chromedp.Navigate(w.URL + "/admin/actions"))
	b.shows("document.querySelectorAll('.requested button.whole').length === 3")
	b.has(".requested", "Canceled")
	b.press(".segments button", "Open")
	b.has(".empty", "No action matches")
	b.shows("location.search === '?show=open'")
	b.press(".segments button", "Ended")
	b.fill(".search input", "gpu-1")
	b.shows("location.search === '?show=ended&machine=gpu-1' && document.querySelectorAll('.requested button.whole').length === 3")
	b.press(".requested button", "Drain")
	b.has(".open .outcome", "dry run: it would cordon gpu-1")
	b.has(".open .command", "paictl action get drain-")
	b.menu("Copy as paictl")
	b.shows("window.copied === 'paictl action list --phase Succeeded,Failed,Refused,Expired,Canceled --machine gpu-1'")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".top button", "CSV")
	b.shows("window.saved?.startsWith('name,operation,job,machine,') && window.saved.trim().split('\\r\\n').length === 4")

	// The page doesn't offer operations to other users.
	b = openTab(t)
	b.signIn(w, "/machines?machine=gpu-1", "ann")
	b.has(".drawer", "NVIDIA")
	b.shows("!document.querySelector('.requests') && !document.querySelector('td .menu')")
}
