package alerthandler_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/notify"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/report"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// mails is a mail server that sends the text of each mail to a channel.
type mails chan string

func (m mails) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (mails) Mail(string, *smtp.MailOptions) error          { return nil }
func (mails) Rcpt(string, *smtp.RcptOptions) error          { return nil }
func (mails) Reset()                                        {}
func (mails) Logout() error                                 { return nil }
func (m mails) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	m <- string(text)
	return err
}

// notified starts a mail server, and creates the record and a person. It returns a configuration of notifications, and a function that returns the
// next mail.
func notified(t *testing.T, w *world, record, person string) (*notify.Config, func() string) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	box := make(mails, 10)
	server := smtp.NewServer(box)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	_, err = w.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kube.SystemNamespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	_, err = w.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: alerthandler.RecordName}, Data: map[string]string{v1.RecordKey: record}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Delete(context.WithoutCancel(t.Context()), alerthandler.RecordName, metav1.DeleteOptions{}))
	})
	spec := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(person), &spec))
	_, err = w.objects.Resource(peoplev1.Users).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": peoplev1.GroupVersion.String(), "kind": "User", "metadata": map[string]any{"name": peoplev1.ObjectName("ann")}, "spec": spec,
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.objects.Resource(peoplev1.Users).Delete(context.WithoutCancel(t.Context()), peoplev1.ObjectName("ann"), metav1.DeleteOptions{}))
	})
	return &notify.Config{SMTP: notify.SMTP{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: notify.TLSNone, From: "pai@example.org"}, PerHour: 10}, func() string {
		t.Helper()
		select {
		case text := <-box:
			return strings.ReplaceAll(text, "=\r\n", "") // without the breaks of long lines
		case <-time.After(waitFor):
			t.Fatal("no mail came")
			return ""
		}
	}
}

// The owner of an idle job gets a mail before the job is stopped. The owner adds the tag in the mail to keep the job, and gets a second mail.
func TestTheOwnerKeepsTheJob(t *testing.T) {
	w := open(t)
	tell, next := notified(t, w, "", `{"name":"ann","email":"ann@example.org"}`)
	w.job("ann", "train")
	h, err := alerthandler.New(alerthandler.Options{Config: w.Config, JobNamespace: kube.JobNamespace, SystemNamespace: kube.SystemNamespace, Notify: tell, Pause: 10 * time.Millisecond,
		Policies: config(t, `
policies: [{name: idle, alerts: {alertname: JobGpusIdle}, exempt: {tags: [keep]}, steps: [{do: stop-job, grace: 4h}]}]`), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = h.Run(ctx); done <- struct{}{} }()
	go func() { h.Lead(ctx); done <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-done; <-done })
	w.send(h, idle("ann", "train"))
	first := next()
	require.Contains(t, first, "will be stopped at")
	require.Contains(t, first, `add the tag "keep"`)
	require.Contains(t, first, "ann@example.org")
	_, err = w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).Patch(t.Context(), jobv1.ObjectName("ann", "train"), types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+jobv1.AnnotationTags+`":"keep"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Contains(t, next(), "the policy exempts jobs with the tag keep")
	for _, a := range w.settled(1) {
		require.Equal(t, v1.PhaseRefused, a.Status.Phase)
	}
}

// A person who has chosen the weekly report gets it by mail. The report lists the unknown figures.
func TestTheWeeklyReportIsMailed(t *testing.T) {
	w := open(t)
	tell, next := notified(t, w, `{"since":1,"entries":{}}`, `{"name":"ann","email":"ann@example.org","notifications":{"weeklyReport":true}}`)
	monday := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	var asked api.UsageQuery
	sources := &report.Sources{
		Usage: func(_ context.Context, q api.UsageQuery) (*api.Usage, error) {
			asked = q
			return &api.Usage{Since: q.Since, Until: q.Until, Items: []api.UsageItem{{VirtualCluster: "vision", User: "ann", GPUTime: api.GPUTime{Guaranteed: 36000}}, {VirtualCluster: "vision", User: "bob", GPUTime: api.GPUTime{Guaranteed: 72000}}}}, nil
		},
		Jobs: func(context.Context, listing.Filter) (*listing.Page, error) { return &listing.Page{}, nil },
		Occupied: func(context.Context, string, string, time.Time, time.Time) ([]metrics.OccupiedUse, error) {
			return nil, metrics.ErrNone
		},
		Now: func() time.Time { return monday },
	}
	h, err := alerthandler.New(alerthandler.Options{Config: w.Config, JobNamespace: kube.JobNamespace, SystemNamespace: kube.SystemNamespace, Notify: tell, Pause: 10 * time.Millisecond,
		Reports: alerthandler.ReportOptions{Sources: sources}, Policies: config(t, "policies: []"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: func() time.Time { return monday }})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = h.Run(ctx); done <- struct{}{} }()
	go func() { h.Lead(ctx); done <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-done; <-done })
	text := next()
	require.Contains(t, text, "weekly report of GPU hours")
	require.Regexp(t, `(?m)^ann +10\.0 `, text)
	require.NotContains(t, text, "bob", "others' figures are not ann's")
	require.Contains(t, text, "no metrics")
	require.Equal(t, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), asked.Since)
	require.Equal(t, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), asked.Until)
}
