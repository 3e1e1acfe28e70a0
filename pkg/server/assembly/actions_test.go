package assembly_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// The alert handler carries out an administrator's request. It refuses the request of a person who is no longer an administrator.
func TestRequestsOfAdministrators(t *testing.T) {
	h := newHouse(t)
	objects, err := dynamic.NewForConfig(h.cluster.Config)
	require.NoError(t, err)
	require.NoError(t, objects.Resource(actionsv1.Actions).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	request := func(who, body string, status int) (out api.Action) {
		t.Helper()
		a := h.as(who, "POST", "/api/v3/actions", body)
		require.Equal(t, status, a.Status, a.Body)
		if status == 201 {
			a.Into(&out)
		}
		return out
	}
	const cordon = `{"operation":"cordon","machine":"gpu-2","reason":"a fan is loud"}`
	request("ann", cordon, 403)
	request("root", `{"operation":"cordon","machine":"gpu-9","reason":"x"}`, 404)
	h.person(t, "rosa", v1.GroupAdministrators)
	former := request("rosa", cordon, 201)
	h.Person("rosa", v1.GroupDefault)
	waits := request("root", `{"operation":"drain","machine":"gpu-1","reason":"x","graceSeconds":3600}`, 201)
	dry := request("root", `{"operation":"cordon","machine":"gpu-2","reason":"a fan is loud","dryRun":true}`, 201)
	assert.Equal(t, "New", dry.Phase)

	policies, err := policy.Read([]byte(`{"limits":{"stopsPerHour":1,"stopsPerHourPerVirtualCluster":1,"machinesPerHour":1,"machinesOutPercent":10},"drainTimeout":"1m","keep":"24h","policies":[]}`))
	require.NoError(t, err)
	handler, err := alerthandler.New(alerthandler.Options{Config: h.cluster.Config, JobNamespace: kube.JobNamespace, Policies: policies, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = handler.Run(ctx); done <- struct{}{} }()
	go func() { handler.Lead(ctx); done <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-done; <-done })

	get := func(name string) (out api.Action) {
		t.Helper()
		a := h.as("root", "GET", "/api/v3/actions/"+name, "")
		require.Equal(t, 200, a.Status, a.Body)
		a.Into(&out)
		return out
	}
	ends := func(name, phase, says string) {
		t.Helper()
		h.Eventually(name+" ends", func() bool { a := get(name); return a.Final() })
		assert.Equal(t, phase, get(name).Phase)
		assert.Contains(t, get(name).Message, says)
	}
	ends(former.Name, "Refused", "rosa is no longer an administrator")
	ends(dry.Name, "Succeeded", "dry run: it would cordon gpu-2")
	made := request("root", cordon, 201)
	ends(made.Name, "Succeeded", "gpu-2 is cordoned")
	node, err := h.cluster.Client.CoreV1().Nodes().Get(t.Context(), "gpu-2", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, node.Spec.Unschedulable)
	ends(request("root", `{"operation":"uncordon","machine":"gpu-2","reason":"the fan is new"}`, 201).Name, "Succeeded", "gpu-2 gets pods")

	h.Eventually("the drain waits for its grace", func() bool { return get(waits.Name).Phase == "Noticed" })
	cancelPath := fmt.Sprintf("/api/v3/actions/%s/cancel", waits.Name)
	require.Equal(t, 403, h.as("ann", "POST", cancelPath, `{"reason":"no"}`).Status)
	require.Equal(t, 200, h.as("root", "POST", cancelPath, `{"reason":"not today"}`).Status)
	ends(waits.Name, "Canceled", "canceled: not today (root)")
	assert.Equal(t, 409, h.as("root", "POST", "/api/v3/actions/"+made.Name+"/cancel", `{"reason":"no"}`).Status)

	var page api.Actions
	h.as("root", "GET", "/api/v3/actions?phase=canceled&phase=refused&limit=1", "").Into(&page)
	require.Len(t, page.Items, 1)
	assert.NotEmpty(t, page.Next)
	var last api.Actions
	h.as("root", "GET", "/api/v3/actions?phase=canceled&phase=refused&limit=1&cursor="+page.Next, "").Into(&last)
	require.Len(t, last.Items, 1)
	assert.NotEqual(t, page.Items[0].Name, last.Items[0].Name)
	assert.Empty(t, last.Next)
	assert.Equal(t, 400, h.as("root", "GET", "/api/v3/actions?phase=none", "").Status)
	assert.Equal(t, 400, h.as("root", "GET", "/api/v3/actions?limit=5000", "").Status)
}
