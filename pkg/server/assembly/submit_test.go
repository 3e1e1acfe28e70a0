package assembly_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// storage creates a claim that jobs can mount. The claim's label marks it as a default for all users.
func (h *house) storage(t *testing.T, name string) {
	t.Helper()
	_, err := h.cluster.Client.CoreV1().PersistentVolumeClaims(kube.JobNamespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"paictl.openpai.org/default-storage": "true"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// mounted returns the claims that the first role of a job mounts.
func mounted(f *fv1.Framework) (out []string) {
	for _, v := range f.Spec.TaskRoles[0].Task.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

func TestStoragesAreThoseThatAreGranted(t *testing.T) {
	h := newHouse(t)
	for _, name := range []string{"lab", "home", "vault"} {
		h.storage(t, name)
	}
	h.Group("disks", func(g *v1.GroupSpec) {
		g.VirtualClusters = []v1.VCGrant{{Name: "speech"}}
		g.Storages = []string{"lab", "home"}
	})
	h.person(t, "dan", "disks")
	h.Eventually("the grant is known", func() bool {
		return h.as("dan", "GET", "/api/v3/whoami", "").JSON()["grants"].(map[string]any)["storages"] != nil
	})
	with := func(name, storages string) string {
		return servertest.JobFile(name, "speech") + "extras: {storages: " + storages + "}\n"
	}
	send := func(who, text string) *servertest.Answer { return h.as(who, "POST", "/api/v2/jobs", text) }

	a := send("dan", with("disk-1", "[{name: home}]"))
	require.Equal(t, 202, a.Status, a.Body)
	assert.Equal(t, []string{"home"}, mounted(framework(t, h.cluster, "dan", "disk-1")))
	a = send("dan", with("disk-2", "[]"))
	require.Equal(t, 202, a.Status, a.Body)
	assert.Equal(t, []string{"lab"}, mounted(framework(t, h.cluster, "dan", "disk-2")), "the first of each group is the default")
	for _, who := range []string{"ann", "root"} {
		a = send(who, with("disk-3", "[{name: lab}]"))
		assert.Contains(t, []int{400, 403}, a.Status, "%s: %s", who, a.Body)
		assert.NotContains(t, a.Body, "vault", "%s isn't told which there are", who)
	}
	a = send("dan", with("disk-4", "[{name: vault}]"))
	assert.Contains(t, []int{400, 403}, a.Status, a.Body)
	a = send("ann", with("disk-5", "[]"))
	if a.Status == 202 {
		assert.Empty(t, mounted(framework(t, h.cluster, "ann", "disk-5")))
	}
}

func TestWhatAJobMayAskForIsGranted(t *testing.T) {
	h := newHouse(t)
	text := func(name, extras string) string {
		return servertest.JobFile(name, "speech") + "extras: " + extras + "\n"
	}
	for name, c := range map[string]struct {
		extras string
		status int
	}{
		"prod":         {"{hivedScheduler: {jobPriorityClass: prod}}", 202},
		"crit":         {"{hivedScheduler: {jobPriorityClass: crit}}", 403},
		"host-network": {"{hostNetwork: true}", 403},
		"after-hidden": {"{after: [vic/hidden]}", 0},
	} {
		if c.status == 0 {
			continue
		}
		a := h.as("ann", "POST", "/api/v2/jobs", text("may-"+name, c.extras))
		assert.Equal(t, c.status, a.Status, "%s: %s", name, a.Body)
	}
	require.Equal(t, 202, h.Submit(h.tokens["vic"], "hidden", "vision").Status)
	there := h.as("ann", "POST", "/api/v2/jobs", text("may-after", "{after: [vic/hidden]}"))
	missing := h.as("ann", "POST", "/api/v2/jobs", text("may-after", "{after: [vic/nothere]}"))
	assert.GreaterOrEqual(t, there.Status, 400, there.Body)
	assert.Equal(t, missing.Status, there.Status)
	assert.Equal(t, without(missing), strings.ReplaceAll(without(there), "hidden", "nothere"), "a job that isn't seen isn't there")
}

func TestNamesOfOthersAreInNoAnswer(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "quietly-done", "speech").Status)
	require.Equal(t, 202, h.Submit(h.tokens["vic"], "own-thing", "vision").Status)
	for _, path := range []string{
		"/api/v2/jobs", "/api/v2/jobs?keyword=quietly", "/api/v2/jobs?username=ann", "/api/v2/jobs?vc=speech", "/api/v2/jobs?withTotalCount=true", "/api/v2/jobs?state=WAITING&order=jobName,DESC",
		"/api/v3/jobs", "/api/v3/jobs?user=ann", "/api/v3/jobs?keyword=quietly", "/api/v3/jobs/vic/own-thing", "/api/v3/jobs/vic/own-thing/why", "/api/v3/jobs/vic/own-thing/events",
		"/api/v2/jobs/vic~own-thing", "/api/v3/offer", "/api/v3/usage",
	} {
		a := h.as("vic", "GET", path, "")
		assert.Equal(t, 200, a.Status, "%s: %s", path, a.Body)
		assert.NotContains(t, a.Body, "quietly-done", path)
		assert.NotContains(t, a.Body, fv1.ObjectName("ann", "quietly-done"), path)
	}
	assert.Contains(t, h.as("abe", "GET", "/api/v2/jobs?keyword=quietly", "").Body, "quietly-done", "who may see it does")

	// ann's job waits for a job of vic, which abe may not read.
	f := framework(t, h.cluster, "ann", "quietly-done")
	metav1.SetMetaDataAnnotation(&f.ObjectMeta, fv1.AnnotationAfter, `[{"job":"vic/own-thing","framework":"`+fv1.ObjectName("vic", "own-thing")+`","uid":"1"}]`)
	jobs, err := job.New(h.cluster)
	require.NoError(t, err)
	_, err = jobs.Frameworks.Patch(t.Context(), f.Name, types.MergePatchType, map[string]any{"metadata": map[string]any{"annotations": f.Annotations}})
	require.NoError(t, err)
	a := h.as("abe", "GET", "/api/v3/jobs/ann/quietly-done", "")
	require.Equal(t, 200, a.Status, a.Body)
	assert.Contains(t, a.Body, `"after":[{`)
	assert.NotContains(t, a.Body, "own-thing")
	assert.NotContains(t, a.Body, fv1.ObjectName("vic", "own-thing"))
	assert.Contains(t, h.as("root", "GET", "/api/v3/jobs/ann/quietly-done", "").Body, "vic/own-thing")

	// The name for a copy doesn't reveal the names of the owner's jobs.
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "quietly-done-2", "speech").Status)
	assert.Contains(t, h.as("abe", "GET", "/api/v3/jobs/ann/quietly-done/freename", "").Body, `"quietly-done-2"`)
	assert.Contains(t, h.as("ann", "GET", "/api/v3/jobs/ann/quietly-done/freename", "").Body, `"quietly-done-3"`)
}

func TestASubmissionSentAgainIsOne(t *testing.T) {
	h := newHouse(t)
	data, err := json.Marshal(api.Submission{File: "my.yaml", Text: servertest.JobFile("twice", "speech")})
	require.NoError(t, err)
	checked := h.as("ann", "POST", "/api/v3/jobs?check=true", string(data))
	require.Equal(t, 200, checked.Status, checked.Body)
	assert.Equal(t, "twice", checked.JSON()["name"])
	assert.NotContains(t, checked.JSON(), "outcome")
	assert.NotContains(t, checked.JSON(), "outlook")
	checked = h.as("ann", "POST", "/api/v3/jobs?check=true&outlook=true", string(data))
	require.Equal(t, 200, checked.Status, checked.Body)
	outlook, _ := checked.JSON()["outlook"].(map[string]any)
	assert.Equal(t, "unknown", outlook["verdict"], "no scheduler answers, and the findings still come: %s", checked.Body)
	assert.NotEmpty(t, outlook["reason"])
	assert.Equal(t, 404, h.as("ann", "GET", "/api/v3/jobs/ann/twice", "").Status, "a check makes nothing")
	const key = "0123456789abcdef"
	other := servertest.Start(t, h.cluster, servertest.Options{})
	for _, server := range []*servertest.Server{h.Server, h.Server, other} {
		a := server.Do("POST", "/api/v3/jobs", h.tokens["ann"], string(data), "Idempotency-Key", key)
		require.Equal(t, 200, a.Status, a.Body)
		assert.Equal(t, "submitted", a.JSON()["outcome"], "the answer is that of the first time")
	}
	printed := h.Printed.String()
	assert.Equal(t, "repeated", h.as("ann", "POST", "/api/v3/jobs", string(data)).JSON()["outcome"], "without a key it is another submission")
	assert.NotContains(t, strings.TrimPrefix(h.Printed.String(), printed), `"verb":"submit"`, "nothing changed")
	for name, change := range map[string]func(*api.Submission){"name": func(s *api.Submission) { s.Text = servertest.JobFile("thrice", "speech") }, "flag": func(s *api.Submission) { s.Replace = true }} {
		s := api.Submission{File: "my.yaml", Text: servertest.JobFile("twice", "speech")}
		change(&s)
		changed, err := json.Marshal(s)
		require.NoError(t, err)
		a := other.Do("POST", "/api/v3/jobs", h.tokens["ann"], string(changed), "Idempotency-Key", key)
		assert.Equal(t, 422, a.Status, "%s: %s", name, a.Body)
		assert.Equal(t, "IdempotencyKeyError", a.Code())
		assert.Equal(t, 404, h.as("ann", "GET", "/api/v3/jobs/ann/thrice", "").Status)
	}
	a := h.Do("POST", "/api/v3/jobs", h.tokens["abe"], string(data), "Idempotency-Key", key)
	assert.Equal(t, 200, a.Status, "another person's key is another one: %s", a.Body)
	for _, bad := range []string{"short", strings.Repeat("k", 65), "with space"} {
		assert.Equal(t, 400, h.Do("POST", "/api/v3/jobs", h.tokens["ann"], string(data), "Idempotency-Key", bad).Status, bad)
	}
	t.Run("a submission that was refused has used no key", func(t *testing.T) {
		const key = "refused-at-first"
		clash, err := json.Marshal(api.Submission{Text: strings.Replace(servertest.JobFile("twice", "speech"), "hello", "bye", 1)})
		require.NoError(t, err)
		assert.Equal(t, 409, h.Do("POST", "/api/v3/jobs", h.tokens["ann"], string(clash), "Idempotency-Key", key).Status)
		fine, err := json.Marshal(api.Submission{Text: strings.Replace(servertest.JobFile("twice-b", "speech"), "hello", "bye", 1)})
		require.NoError(t, err)
		assert.Equal(t, 200, h.Do("POST", "/api/v3/jobs", h.tokens["ann"], string(fine), "Idempotency-Key", key).Status)
	})
	t.Run("the answer outlives the job", func(t *testing.T) {
		h.letGo(t)
		gone(t, h, "ann", "twice")
		h.Eventually("it is gone", func() bool { return h.as("ann", "GET", "/api/v3/jobs/ann/twice", "").Status == 404 })
		a := h.Do("POST", "/api/v3/jobs", h.tokens["ann"], string(data), "Idempotency-Key", key)
		assert.Equal(t, 200, a.Status, a.Body)
		assert.Equal(t, 404, h.as("ann", "GET", "/api/v3/jobs/ann/twice", "").Status, "it isn't made again")
		require.Equal(t, 200, h.as("ann", "POST", "/api/v3/jobs", string(data)).Status)
	})
	assert.Contains(t, h.as("ann", "GET", "/api/v3/jobs", "").Body, `"name":"twice"`, "who has submitted a job sees it in the next list")
	broken, err := json.Marshal(api.Submission{File: "my.yaml", Text: "name: [\n"})
	require.NoError(t, err)
	a = h.as("ann", "POST", "/api/v3/jobs", string(broken))
	assert.Equal(t, 400, a.Status)
	e := api.Error{}
	a.Into(&e)
	require.NotEmpty(t, e.Findings, a.Body)
	assert.Equal(t, "my.yaml", e.Findings[0].File)
}

func TestJobsWithoutAVirtualClusterGoToTheDefaultOfTheirOwner(t *testing.T) {
	h := newHouse(t)
	h.Group("talkers", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "speech"}} })
	h.person(t, "dan", "talkers")
	unnamed := func(name string) *servertest.Answer {
		return h.as("dan", "POST", "/api/v2/jobs", servertest.JobFile(name, ""))
	}
	choose := func(who, vc string) *servertest.Answer {
		dan := api.User{}
		h.as("dan", "GET", "/api/v3/users/dan", "").Into(&dan)
		next := *dan.Spec
		next.DefaultVirtualCluster = vc
		return h.as(who, "PUT", "/api/v3/users/dan", body(t, api.UserChange{Was: *dan.Spec, Spec: next}))
	}
	h.Eventually("the grant is known", func() bool { return strings.Contains(h.as("dan", "GET", "/api/v3/whoami", "").Body, "speech") })
	a := unnamed("first")
	assert.Equal(t, 403, a.Status, "without a choice it is \"default\", which isn't granted: %s", a.Body)

	for _, vc := range []string{"vision", "nowhere", "a b"} {
		a = choose("dan", vc)
		assert.GreaterOrEqual(t, a.Status, 400, a.Body)
		assert.NotContains(t, a.Body, "take one of", "people don't learn which others exist")
	}
	assert.Equal(t, 403, choose("ann", "speech").Status)
	require.Equal(t, 200, choose("dan", "speech").Status)
	assert.Equal(t, "speech", h.as("dan", "GET", "/api/v3/whoami", "").JSON()["defaultVirtualCluster"])
	a = unnamed("first")
	require.Equal(t, 202, a.Status, a.Body)
	assert.Equal(t, "speech", framework(t, h.cluster, "dan", "first").Labels[fv1.LabelVC])
	a = h.as("dan", "POST", "/api/v2/jobs", servertest.JobFile("second", "vision"))
	assert.Equal(t, 403, a.Status, "a file that names one isn't changed: %s", a.Body)

	// The grant goes, and the choice stays.
	h.Group("talkers", func(g *v1.GroupSpec) { g.VirtualClusters = nil })
	h.Eventually("the grant is gone", func() bool { return unnamed("third").Status == 403 })
	assert.Contains(t, unnamed("third").Body, "your default virtual cluster speech is not granted to you")
	require.Equal(t, 200, choose("dan", "").Status)
	assert.NotContains(t, unnamed("third").Body, "your default virtual cluster")
}
