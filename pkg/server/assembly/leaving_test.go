package assembly_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// seam is a house in which a test can act just before a request of the server to the API server.
type seam struct {
	*house
	before atomic.Pointer[func(*http.Request)]
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newSeam(t *testing.T) *seam {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := &seam{}
	s.house = houseOn(t, c, servertest.Options{API: func(config *rest.Config) {
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if do := s.before.Load(); do != nil {
					(*do)(r)
				}
				return rt.RoundTrip(r)
			})
		})
	}})
	return s
}

// at calls do once, before the server sends a request to the API server with this method and this suffix of the path.
func (s *seam) at(method, end string, do func()) {
	var once atomic.Bool
	f := func(r *http.Request) {
		if r.Method == method && strings.HasSuffix(r.URL.Path, end) && once.CompareAndSwap(false, true) {
			do()
		}
	}
	s.before.Store(&f)
}

// leaves sends a request whose client disconnects when the server sends the given request to the API server.
func (s *seam) leaves(t *testing.T, who, method, path, body, apiMethod, apiPath string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	left := false
	s.at(apiMethod, apiPath, func() { left = true; leave() })
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+s.tokens[who])
	if strings.HasPrefix(body, "protocolVersion") {
		r.Header.Set("Content-Type", "text/yaml")
	}
	s.Assembly.Server.ServeHTTP(httptest.NewRecorder(), r)
	require.True(t, left, "%s %s was never asked for", apiMethod, apiPath)
	s.before.Store(nil)
}

// last returns the latest audit record with an object and a verb.
func (s *seam) last(t *testing.T, object, verb string) audit.Record {
	t.Helper()
	page := audit.Page{}
	s.Eventually("the record is kept", func() bool {
		s.as("root", "GET", "/api/v3/audit?object="+object+"&verb="+verb, "").Into(&page)
		return len(page.Items) > 0
	})
	return page.Items[0]
}

func TestWhatBeganIsDoneAndNotedAlsoWhenTheClientLeaves(t *testing.T) {
	s := newSeam(t)
	file := strings.Replace(servertest.JobFile("grows", "speech"), "instances: 1", "instances: 2", 1) + "extras: {gangAllocation: false}\n"
	s.leaves(t, "ann", "POST", "/api/v2/jobs", file, "POST", "/frameworks")
	assert.Equal(t, audit.Done, s.last(t, "grows", "submit").Outcome)
	object := fv1.ObjectName("ann", "grows")
	_, err := s.cluster.Client.CoreV1().Secrets(kube.JobNamespace).Get(t.Context(), fv1.SpecSecretName(object), metav1.GetOptions{})
	require.NoError(t, err, "the job is whole")

	s.Eventually("the job is known", func() bool { return s.as("ann", "GET", "/api/v3/jobs/ann/grows/brief", "").Status == 200 })
	s.leaves(t, "ann", "POST", "/api/v3/jobs/ann/grows/scale", `{"tasks":3}`, "PUT", "/secrets/"+fv1.SpecSecretName(object))
	assert.Equal(t, int32(3), framework(t, s.cluster, "ann", "grows").Spec.TaskRoles[0].TaskNumber, "and not only its Secret changed")
	r := s.last(t, "grows", "scale")
	assert.Equal(t, audit.Done, r.Outcome, r.Reason)
	assert.Equal(t, "ann", r.Actor)

	s.leaves(t, "ann", "POST", "/api/v3/jobs/ann/grows/stop", "", "PATCH", "/frameworks/"+object)
	assert.Equal(t, fv1.ExecutionStop, framework(t, s.cluster, "ann", "grows").Spec.ExecutionType)
	assert.Equal(t, audit.Done, s.last(t, "grows", "stop").Outcome)
}

func TestAPersonIsRemovedWholeAlsoWhenTheClientLeaves(t *testing.T) {
	s := newSeam(t)
	s.person(t, "zoe", "speech")
	require.Equal(t, 202, s.Submit(s.tokens["zoe"], "runs", "speech").Status)
	s.leaves(t, "root", "DELETE", "/api/v3/users/zoe", "", "PUT", "/users/zoe")
	_, err := s.People.Person("zoe")
	require.ErrorIs(t, err, people.ErrNoUser)
	assert.Equal(t, fv1.ExecutionStop, framework(t, s.cluster, "zoe", "runs").Spec.ExecutionType)
	r := s.last(t, "zoe", "manage")
	assert.Equal(t, audit.Done, r.Outcome, r.Reason)
	assert.Equal(t, map[string]string{"change": "remove", "stopped": "1"}, r.Detail)
}

func TestNoJobOfAPersonRunsOnThatCameWhileThePersonWasRemoved(t *testing.T) {
	s := newSeam(t)
	s.person(t, "yul", "speech")
	elsewhere, err := people.Open(s.cluster.Config, people.Options{}) // another replica
	require.NoError(t, err)
	jobs, err := job.New(s.cluster)
	require.NoError(t, err)
	s.at("POST", "/frameworks", func() {
		_, err := people.RemoveWith(t.Context(), elsewhere, "yul", jobs.StopAll)
		assert.NoError(t, err)
	})
	a := s.Submit(s.tokens["yul"], "late", "speech")
	assert.Equal(t, 403, a.Status, a.Body)
	assert.Contains(t, a.Body, "yul is no longer a user of this cluster")
	f, err := jobs.Frameworks.Get(t.Context(), fv1.ObjectName("yul", "late"))
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
		assert.Equal(t, fv1.ExecutionStop, f.Spec.ExecutionType)
	}
	r := s.last(t, "late", "submit")
	assert.Equal(t, audit.Refused, r.Outcome)
	assert.Equal(t, "yul", r.Actor)
}
