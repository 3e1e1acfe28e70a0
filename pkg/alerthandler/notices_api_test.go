package alerthandler_test

import (
	"context"
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
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// mails is a mail server; each mail is one text.
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

// The owner of an idle job gets a mail before it is stopped, keeps it with the tag that the mail names, and gets a second mail.
func TestTheOwnerKeepsTheJob(t *testing.T) {
	w := open(t)
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
	_, err = w.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: alerthandler.RecordName}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Delete(context.WithoutCancel(t.Context()), alerthandler.RecordName, metav1.DeleteOptions{}))
	})
	_, err = w.objects.Resource(peoplev1.Users).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": peoplev1.GroupVersion.String(), "kind": "User", "metadata": map[string]any{"name": peoplev1.ObjectName("ann")},
		"spec": map[string]any{"name": "ann", "email": "ann@example.org"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.objects.Resource(peoplev1.Users).Delete(context.WithoutCancel(t.Context()), peoplev1.ObjectName("ann"), metav1.DeleteOptions{}))
	})
	w.job("ann", "train")
	tell := &notify.Config{SMTP: notify.SMTP{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: notify.TLSNone, From: "pai@example.org"}, PerHour: 10}
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
	next := func() string {
		select {
		case text := <-box:
			return strings.ReplaceAll(text, "=\r\n", "") // without the breaks of long lines
		case <-time.After(waitFor):
			t.Fatal("no mail came")
			return ""
		}
	}
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
	require.Empty(t, box)
}
