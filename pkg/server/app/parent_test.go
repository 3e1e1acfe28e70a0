package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// relatives is a cluster with the jobs of vic, in the virtual cluster speech. An earlier job with the name train has ended and is in the history. A
// later job with the same name is live.
type relatives struct {
	app       *App
	asked     int
	noHistory bool
	live      map[string]*fv1.Framework
}

func newRelatives(t *testing.T) *relatives {
	t.Helper()
	r := &relatives{live: map[string]*fv1.Framework{}}
	r.add("vic", "train", "new", nil)
	past := fapi.JobDetail{Job: fapi.Job{User: "vic", Name: "train", UID: "old", VirtualCluster: "speech"}, Config: "name: train\n"}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked++
		w.Header().Set("Content-Type", "application/json")
		name := path.Base(q.URL.Path)
		switch f := r.live[name]; {
		case f != nil:
			_ = json.NewEncoder(w).Encode(f)
		case q.URL.Path == "/v1/jobs/"+name && r.noHistory:
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(fapi.Error{Code: "Unavailable", Message: "the archive is copied"})
		case q.URL.Path == "/v1/jobs/old":
			_ = json.NewEncoder(w).Encode(past)
		case q.URL.Path == "/v1/jobs/"+name:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(fapi.Error{Code: "NotFound", Message: "no job"})
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
		}
	}))
	t.Cleanup(srv.Close)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fapi.TokenSecret, Namespace: kube.SystemNamespace}, Data: map[string][]byte{fapi.TokenKey: []byte("x")}}
	c, err := job.NewAt(&kube.Cluster{Client: fake.NewClientset(token), Config: &rest.Config{Host: srv.URL}}, job.Options{HistoryURL: srv.URL})
	require.NoError(t, err)
	r.app = &App{Jobs: c}
	return r
}

// add adds a live job.
func (r *relatives) add(user, name, uid string, from *fv1.ClonedFrom) {
	f := &fv1.Framework{}
	f.Name, f.UID = fv1.ObjectName(user, name), types.UID(uid)
	f.Labels = map[string]string{fv1.LabelUser: user, fv1.LabelVC: "speech"}
	f.Annotations = map[string]string{fv1.AnnotationJobName: name, fv1.AnnotationConfig: "name: " + name + "\nsecret: ******\n"}
	if from != nil {
		f.Annotations[fv1.AnnotationClonedFrom], _ = from.Text()
	}
	r.live[f.Name] = f
}

// as returns the operations of a person who may read the jobs of a virtual cluster, or only their own jobs if sees is "".
func (r *relatives) as(name, sees string, scopes ...rules.Scope) *Actions {
	s := rules.Subject{Name: name, Token: rules.Token{Application: len(scopes) > 0, Scopes: scopes}}
	if sees != "" {
		s.Grants.VCs = map[string]rules.VC{sees: {SeeJobs: true}}
	}
	return r.app.For(Caller{Subject: s}, Origin{})
}

func TestAParentIsRecordedIfItsFileMayBeRead(t *testing.T) {
	r := newRelatives(t)
	record := func(d *Actions, from ClonedFrom) (uid types.UID, warned bool) {
		t.Helper()
		got, found, err := d.parent(t.Context(), "job.yaml", &from)
		require.NoError(t, err)
		assert.Empty(t, found.Errors())
		if got == nil {
			return "", len(found) == 1
		}
		return got.UID, len(found) > 0
	}
	sees, alone := r.as("ann", "speech"), r.as("ann", "vision")
	for name, c := range map[string]struct {
		by   *Actions
		from ClonedFrom
		uid  types.UID
	}{
		"the latest job of a name":               {sees, ClonedFrom{Job: "vic/train"}, "new"},
		"by its UID":                             {sees, ClonedFrom{Job: "vic/train", UID: "new"}, "new"},
		"an earlier job of the name":             {sees, ClonedFrom{Job: "vic/train", UID: "old"}, "old"},
		"a UID that no job had":                  {sees, ClonedFrom{Job: "vic/train", UID: "none"}, ""},
		"the UID of another job":                 {sees, ClonedFrom{Job: "vic/other", UID: "old"}, ""},
		"a name that no job had":                 {sees, ClonedFrom{Job: "vic/nothing"}, ""},
		"one's own job, without an owner":        {r.as("vic", ""), ClonedFrom{Job: "train"}, "new"},
		"a job that isn't seen":                  {alone, ClonedFrom{Job: "vic/train"}, ""},
		"a token that may read":                  {r.as("ann", "speech", rules.ScopeSubmit, rules.ScopeRead), ClonedFrom{Job: "vic/train"}, "new"},
		"a token that may only submit":           {r.as("ann", "speech", rules.ScopeSubmit), ClonedFrom{Job: "vic/train"}, ""},
		"the name of a Framework instead of UID": {sees, ClonedFrom{Job: "vic/nothing", UID: fv1.ObjectName("vic", "train")}, ""},
	} {
		uid, warned := record(c.by, c.from)
		assert.Equal(t, c.uid, uid, name)
		assert.Equal(t, c.uid == "", warned, name)
	}

	_, hidden, err := alone.parent(t.Context(), "job.yaml", &ClonedFrom{Job: "vic/train"})
	require.NoError(t, err)
	_, missing, err := alone.parent(t.Context(), "job.yaml", &ClonedFrom{Job: "vic/tarot"})
	require.NoError(t, err)
	hidden[0].Message, missing[0].Message = hidden[0].Message[len("the job vic/train"):], missing[0].Message[len("the job vic/tarot"):]
	assert.Equal(t, missing, hidden, "a job that isn't seen looks like one that doesn't exist")
	asked := r.asked
	record(r.as("ann", ""), ClonedFrom{Job: "vic/train"})
	assert.Equal(t, asked, r.asked, "who sees only their own jobs gets the answer without a lookup")

	for _, bad := range []ClonedFrom{{Job: ""}, {Job: "a/b/c"}, {Job: "a b"}, {Job: "vic/train", UID: "../x"}} {
		_, _, err := sees.parent(t.Context(), "job.yaml", &bad)
		var e *wire.Error
		require.ErrorAs(t, err, &e, "%+v", bad)
		assert.Equal(t, http.StatusBadRequest, e.Status)
		assert.Contains(t, e.Message, "clonedFrom.")
	}

	r.noHistory = true
	_, _, err = sees.parent(t.Context(), "job.yaml", &ClonedFrom{Job: "vic/train", UID: "old"})
	assert.True(t, job.IsUnavailable(err), "without the history, the record would be lost: %v", err)
}

func TestTheParentIsTheJobThatWasCloned(t *testing.T) {
	r := newRelatives(t)
	from := &fv1.ClonedFrom{User: "vic", Name: "train", UID: "old", VirtualCluster: "speech"}
	r.add("ann", "copy", "c", from)
	r.add("ann", "orphan", "o", &fv1.ClonedFrom{User: "vic", Name: "train", UID: "none", VirtualCluster: "speech"})
	r.add("ann", "first", "f", nil)
	of := func(d *Actions, name string) (*job.Job, error) {
		t.Helper()
		j, err := d.Job(t.Context(), "job.read", "ann", name)
		require.NoError(t, err)
		return j.Parent(t.Context())
	}
	got, err := of(r.as("ann", "speech"), "copy")
	require.NoError(t, err)
	assert.Equal(t, "old", got.UID, "a later job has the name now")
	assert.Equal(t, "name: train\n", got.Config)

	_, hidden := of(r.as("ann", ""), "copy")
	_, missing := of(r.as("ann", "speech"), "orphan")
	_, none := of(r.as("ann", "speech"), "first")
	for text, err := range map[string]error{"The job that ann~copy was cloned from is not found.": hidden, "The job that ann~orphan was cloned from is not found.": missing, "Job ann~first wasn't cloned from another job.": none} {
		var e *wire.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, http.StatusNotFound, e.Status)
		assert.Equal(t, text, e.Message)
	}

	j, err := r.as("ann", "").Job(t.Context(), "job.read", "ann", "copy")
	require.NoError(t, err)
	d := &job.Detail{ClonedFrom: from}
	j.told(d)
	assert.Equal(t, &fv1.ClonedFrom{}, d.ClonedFrom, "readers who don't see the parent don't learn its name")
	d.ClonedFrom = from
	if j, err = r.as("ann", "speech").Job(t.Context(), "job.read", "ann", "copy"); assert.NoError(t, err) {
		j.told(d)
		assert.Equal(t, from, d.ClonedFrom)
	}
}
