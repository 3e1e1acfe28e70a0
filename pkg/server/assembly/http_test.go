package assembly_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// house is a server with people. ann and abe work in speech, whose users may read each other's jobs. vic and vera work in vision, whose users may
// read only their own jobs. root is an administrator.
type house struct {
	*servertest.Server
	cluster *kube.Cluster
	tokens  map[string]string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	return houseOn(t, c, servertest.Options{Settings: withDoor()})
}

func houseOn(t *testing.T, c *kube.Cluster, o servertest.Options) *house {
	t.Helper()
	empty(t, c)
	h := &house{Server: servertest.Start(t, c, o), cluster: c, tokens: map[string]string{}}
	h.Group("speech", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "speech", SeeJobs: true}} })
	h.Group("vision", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "vision"}} })
	for name, group := range map[string]string{"ann": "speech", "abe": "speech", "vic": "vision", "vera": "vision", "root": v1.GroupAdministrators} {
		h.person(t, name, group)
	}
	return h
}

// person adds a person, and signs the person in.
func (h *house) person(t *testing.T, name string, groups ...string) {
	t.Helper()
	h.Person(name, groups...)
	p, err := h.People.Person(name)
	require.NoError(t, err)
	made, err := h.Tokens.Browser(t.Context(), p, token.New{})
	require.NoError(t, err)
	h.tokens[name] = made.Token.Reveal()
}

func (h *house) as(who, method, path, body string) *servertest.Answer {
	return h.Do(method, path, h.tokens[who], body)
}

// page is like as, but sends a request to the pages of other services.
func (h *house) page(who, method, path, body string) *servertest.Answer {
	return h.DoPage(method, path, h.tokens[who], body)
}

func TestTwoPeopleInTwoVirtualClusters(t *testing.T) {
	h := newHouse(t)
	a := h.Submit(h.tokens["ann"], "train", "speech")
	require.Equal(t, 202, a.Status, a.Body)
	assert.JSONEq(t, `{"status":202,"message":"Update job train for user ann successfully."}`, a.Body)
	a = h.Submit(h.tokens["vic"], "see", "vision")
	require.Equal(t, 202, a.Status, a.Body)

	// The caller owns the job, even if the file contains another user.
	f := framework(t, h.cluster, "ann", "train")
	assert.Equal(t, "ann", f.Labels[fv1.LabelUser])
	assert.Equal(t, "speech", f.Labels[fv1.LabelVC])
	assert.Equal(t, "speech", f.Labels[fv1.LabelGroup])

	t.Run("lists have what one sees", func(t *testing.T) {
		for who, want := range map[string][]string{"ann": {"train"}, "abe": {"train"}, "vic": {"see"}, "vera": {}, "root": {"see", "train"}} {
			for _, path := range []string{"/api/v2/jobs?order=jobName,ASC", "/rest-server/api/v1/jobs/?order=jobName,ASC"} {
				rows := []map[string]any{}
				h.as(who, "GET", path, "").Into(&rows)
				names := []string{}
				for _, r := range rows {
					names = append(names, r["name"].(string))
				}
				assert.Equal(t, want, names, "%s %s", who, path)
			}
			total := h.as(who, "GET", "/api/v2/jobs?withTotalCount=true&limit=0", "").JSON()
			assert.EqualValues(t, len(want), total["totalCount"], who)
			assert.Empty(t, total["data"])
			page := struct{ Items []struct{ Name string } }{}
			h.as(who, "GET", "/api/v3/jobs", "").Into(&page)
			assert.Len(t, page.Items, len(want), who)
		}
	})
	t.Run("a submission goes where it is granted", func(t *testing.T) {
		a := h.Submit(h.tokens["ann"], "other", "vision")
		assert.Equal(t, 403, a.Status, a.Body)
		assert.Equal(t, "ForbiddenUserError", a.Code())
		assert.NotContains(t, a.Body, "vic")
		assert.Equal(t, 403, h.Submit(h.tokens["ann"], "other", "").Status, "default isn't granted")
		assert.Equal(t, 403, h.Submit(h.tokens["ann"], "other", "nowhere").Status)
		a = h.Submit(h.tokens["root"], "other", "nowhere")
		assert.Equal(t, 400, a.Status, a.Body)
		assert.Equal(t, "InvalidProtocolError", a.Code())
		assert.Equal(t, 202, h.Submit(h.tokens["root"], "mine", "vision").Status)
		assert.Equal(t, "root", framework(t, h.cluster, "root", "mine").Labels[fv1.LabelUser])
	})
	t.Run("a name is used once", func(t *testing.T) {
		assert.Equal(t, 202, h.Submit(h.tokens["ann"], "train", "speech").Status, "the same again")
		a := h.Do("POST", "/api/v2/jobs", h.tokens["ann"], strings.Replace(servertest.JobFile("train", "speech"), "hello", "bye", 1))
		assert.Equal(t, 409, a.Status, a.Body)
		assert.Equal(t, "ConflictJobError", a.Code())
		assert.Equal(t, 202, h.Submit(h.tokens["abe"], "train", "speech").Status, "another person has names of their own")
	})
	t.Run("what isn't seen isn't there", func(t *testing.T) {
		object := fv1.ObjectName("ann", "train")
		for _, path := range []string{
			"/api/v2/jobs/ann~train", "/api/v2/jobs/vic~" + object, "/api/v2/jobs/" + object, "/api/v2/jobs/ann~nothing", "/api/v2/jobs/~train", "/api/v2/jobs/ann~train~x",
			"/api/v2/jobs/ann~train/config", "/api/v2/jobs/ann~train/events", "/api/v2/jobs/ann~train/ssh", "/api/v1/user/ann/jobs/train",
			"/api/v3/jobs/ann/train", "/api/v3/jobs/vic/" + object, "/api/v3/jobs/ann/train/why", "/api/v3/jobs/ann/train/brief", "/api/v3/jobs/ann/train/logs", "/api/v3/jobs/ann/train/logs?match=(",
			"/api/v3/jobs/ann/train/tasks/Worker_1/0/log", "/api/v3/jobs/ann/train/tasks/Worker_1/0/log?at=x", "/api/v3/jobs/ann/train/tasks/x/y/log/matches", "/api/v3/jobs/ann/train/tasks/Worker_1/0/log/text", "/api/v3/jobs/ann/train/follow", "/api/v3/jobs/ann/train/targets",
		} {
			a := h.as("vic", "GET", path, "")
			assert.Equal(t, 404, a.Status, "%s: %s", path, a.Body)
			assert.Equal(t, "NoJobError", a.Code(), path)
		}
		there, missing := h.as("vic", "GET", "/api/v2/jobs/ann~train", ""), h.as("vic", "GET", "/api/v2/jobs/ann~nothing", "")
		assert.Equal(t, strings.ReplaceAll(without(there), "train", "nothing"), without(missing), "the answers are the same")
		for _, ask := range [][3]string{
			{"PUT", "/api/v2/jobs/ann~train/executionType", `{"value":"STOP"}`}, {"POST", "/api/v3/jobs/ann/train/stop", ""}, {"POST", "/api/v3/jobs/ann/train/retry", ""},
			{"DELETE", "/api/v3/jobs/ann/train", ""}, {"DELETE", "/api/v3/jobs/ann/train?history=true", ""}, {"POST", "/api/v3/jobs/ann/train/scale", `{"tasks":3}`},
		} {
			a := h.as("vic", ask[0], ask[1], ask[2])
			assert.Equal(t, 404, a.Status, "%v: %s", ask, a.Body)
			// A user who may read the job, but doesn't own it, gets 403 instead of 404.
			a = h.as("abe", ask[0], ask[1], ask[2])
			assert.Equal(t, 403, a.Status, "%v: %s", ask, a.Body)
			assert.Equal(t, 401, h.Do(ask[0], ask[1], "", ask[2]).Status)
		}
		assert.Equal(t, fv1.ExecutionStart, framework(t, h.cluster, "ann", "train").Spec.ExecutionType)
	})
	t.Run("its owner, and an administrator, may", func(t *testing.T) {
		d := h.as("ann", "GET", "/api/v2/jobs/ann%7Etrain/", "").JSON()
		assert.Equal(t, "train", d["name"])
		assert.Equal(t, "ann", d["jobStatus"].(map[string]any)["username"])
		assert.Contains(t, d["taskRoles"], "Worker_1")
		assert.Equal(t, 404, h.as("ann", "GET", "/api/v2/jobs/ann~train/ssh", "").Status)
		c := h.as("abe", "GET", "/api/v2/jobs/ann~train/config", "")
		assert.Equal(t, "text/yaml; charset=utf-8", c.Header.Get("Content-Type"))
		assert.Equal(t, "train", c.JSON()["name"], "it is JSON")
		assert.Contains(t, h.as("ann", "GET", "/api/v2/jobs/ann~train/config?format=yaml", "").Body, "name: train\n")
		a := h.as("root", "PUT", "/API/v2/Jobs/ann~train/executiontype", `{"value":"STOP"}`)
		assert.Equal(t, 202, a.Status, a.Body)
		assert.Equal(t, fv1.ExecutionStop, framework(t, h.cluster, "ann", "train").Spec.ExecutionType)
		assert.Equal(t, 409, h.as("ann", "PUT", "/api/v2/jobs/ann~train/executionType", `{"value":"START"}`).Status)
	})
	t.Run("what was done is in the audit, and no secret in any log", func(t *testing.T) {
		printed := h.Printed.String()
		assert.Contains(t, printed, `"actor":"root"`)
		assert.Contains(t, printed, `"verb":"stop","kind":"job","object":"train","owner":"ann","vc":"speech","outcome":"done"`)
		assert.Contains(t, printed, `"actor":"abe"`)
		assert.Contains(t, printed, `"outcome":"refused"`)
		for who, secret := range h.tokens {
			assert.NotContains(t, printed, secret, who)
			assert.NotContains(t, printed, secret[strings.LastIndex(secret, ".")+1:], who)
		}
		assert.NotContains(t, printed, servertest.Password)
	})
}

// without returns the body without the request's id.
func without(a *servertest.Answer) string {
	j := a.JSON()
	delete(j, "request")
	return fmt.Sprint(j)
}

// framework reads a Framework from the API server.
func framework(t *testing.T, c *kube.Cluster, user, name string) *fv1.Framework {
	t.Helper()
	f := jobtest.Framework(t, c, fv1.ObjectName(user, name))
	require.Equal(t, user, f.Labels[fv1.LabelUser])
	return f
}

func TestFactsThatCantBeReadAre503(t *testing.T) {
	h := newHouse(t)
	core := h.cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace)
	have, err := core.Get(t.Context(), "scheduler-configuration", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, core.Delete(t.Context(), have.Name, metav1.DeleteOptions{}))
	a := h.Submit(h.tokens["root"], "blind", "vision")
	assert.Equal(t, 503, a.Status, a.Body)
	assert.Equal(t, "UnavailableError", a.Code())
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	have.ResourceVersion, have.UID = "", ""
	_, err = core.Create(t.Context(), have, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, 202, h.Submit(h.tokens["root"], "blind", "vision").Status)
}

// The portal offers only the operations in the response.
func TestEachPersonGetsTheOperationsThatTheRulesAllow(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "train", "speech").Status)
	all := []string{"stop", "retry", "scale", "tag", "delete", "config", "logs", "enter"}
	for who, want := range map[string][]string{"ann": all, "root": all, "abe": {"config", "logs"}} {
		have := struct{ Operations []string }{}
		h.as(who, "GET", "/api/v3/jobs/ann/train/allowed", "").Into(&have)
		assert.Equal(t, want, have.Operations, who)
	}
	assert.Equal(t, 404, h.as("vic", "GET", "/api/v3/jobs/ann/train/allowed", "").Status)
}
