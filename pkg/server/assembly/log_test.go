package assembly_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/node/logstoretest"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// runsOn gives a job a pod that runs on a machine, and returns the UID of the pod.
func (h *house) runsOn(t *testing.T, node, user, name string) string {
	t.Helper()
	object, role := fv1.ObjectName(user, name), framework(t, h.cluster, user, name).Spec.TaskRoles[0].Name
	pods, now := h.cluster.Client.CoreV1().Pods(kube.JobNamespace), int64(0)
	p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fv1.PodName(object, role, 0), Labels: map[string]string{
		fv1.LabelFramework: object, fv1.LabelTaskRole: role, fv1.LabelTaskIndex: "0"}}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "i"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = pods.Delete(context.WithoutCancel(t.Context()), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) // no kubelet runs here
	})
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	return string(p.UID)
}

func TestALogByPosition(t *testing.T) {
	c, m := kubetest.Start(t), logstoretest.New(t)
	servertest.Prepare(t, c)
	h := houseOn(t, c, servertest.Options{Logs: m})
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "train", "speech").Status)
	log := "/api/v3/jobs/ann/train/tasks/Worker_1/0/log"
	a := h.as("ann", "GET", log, "")
	assert.Equal(t, 404, a.Status, a.Body)
	assert.Equal(t, "NoTaskLogError", a.Code(), "nothing has started")

	uid := h.runsOn(t, "n1", "ann", "train")
	m.Print(uid, time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC), "one", "two \xff", strings.Repeat("x", 10_000), "four")
	w := h.as("abe", "GET", log, "").JSON()
	lines := w["lines"].([]any)
	require.Len(t, lines, 4)
	line := func(i int) map[string]any { return lines[i].(map[string]any) }
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("two \xff")), line(1)["text"])
	assert.Equal(t, "2026-11-30T06:00:00Z", line(1)["stamp"])
	assert.EqualValues(t, 10_000, line(2)["bytes"], "it is cut")
	assert.Equal(t, true, w["live"])
	at := url.QueryEscape(line(1)["at"].(string))
	for query, want := range map[string]int{"?at=" + at: 3, "?before=true&at=" + at: 1, "?at=start&lines=2": 2, "?at=end": 4, "?at=end&before=false": 0, "?at=2026-11-30T06:00:01Z": 0,
		"?wait=1ms&at=" + url.QueryEscape(w["to"].(string)): 0, "?lines=1&longest=1048576&at=" + at: 1} {
		a := h.as("ann", "GET", log+query, "")
		require.Equal(t, 200, a.Status, a.Body)
		assert.Len(t, a.JSON()["lines"], want, query)
	}
	found := h.as("ann", "GET", log+"/matches?match="+url.QueryEscape("^t.o"), "").JSON()
	require.Len(t, found["items"], 1)
	assert.Equal(t, line(1)["at"], found["items"].([]any)[0].(map[string]any)["at"])
	assert.Nil(t, found["after"])

	file := h.as("root", "GET", log+"/text", "")
	assert.Equal(t, "one\ntwo \xff\n"+strings.Repeat("x", 10_000)+"\nfour\n", file.Body)
	assert.Equal(t, "attachment; filename=train-Worker_1-0.log", file.Header.Get("Content-Disposition"))
	assert.True(t, strings.HasPrefix(h.as("root", "GET", log+"/text?times=true&of="+at, "").Body, "2026-11-30T06:00:00Z one\n"))

	for query, want := range map[string]string{
		"?at=-1": "isn't a position", "?at=x.1": "isn't a position", "?at=0123abcd.99999999999999999999": "isn't a position", "?lines=0": "between 1 and 2000", "?lines=5000": "between 1 and 2000",
		"?longest=0": "between 1 and 1048576", "?longest=100000": "only with lines=1", "?wait=1h": "time span up to 20s", "?wait=x": "time span", "?attempt=-1": "counted from 0",
		"?taskAttempt=0": "counted from 0", "?attempt=0&previous": "counted from 0", "/matches": "regular expression", "/matches?match=(": "can't be read",
		"/matches?match=" + strings.Repeat("a", 300): "more than 256", "/matches?match=a&limit=0": "between 1 and 1000", "/matches?match=a&from=-7": "isn't a position", "/text?of=7": "isn't a position",
	} {
		a := h.as("ann", "GET", log+query, "")
		assert.Equal(t, 400, a.Status, "%s: %s", query, a.Body)
		assert.Contains(t, a.Body, want, query)
	}
	for _, path := range []string{"?at=00000000.1", "/matches?match=a&from=00000000.1", "/text?of=00000000.1", fmt.Sprintf("?at=%s.9223372036854775807", strings.Split(w["to"].(string), ".")[0])} {
		a := h.as("ann", "GET", log+path, "")
		assert.Equal(t, 410, a.Status, "%s: %s", path, a.Body)
		assert.Equal(t, "LogGoneError", a.Code())
	}
	for _, path := range []string{"/api/v3/jobs/ann/train/tasks/Worker_1/7/log", "/api/v3/jobs/ann/train/tasks/nothing/0/log"} {
		assert.Equal(t, "NoTaskLogError", h.as("ann", "GET", path, "").Code(), path)
	}
	for _, path := range []string{"", "?at=-1", "?at=" + at, "/matches?match=two", "/matches?match=(", "/text"} {
		a := h.as("vic", "GET", log+path, "")
		assert.Equal(t, 404, a.Status, path)
		assert.Equal(t, "NoJobError", a.Code(), path)
		assert.Equal(t, 401, h.Do("GET", log+path, "", "").Status, path)
	}
}
