package send

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

type memory struct{ data []byte }

func (m *memory) Load(context.Context) (*notify.Ledger, error) {
	if m.data == nil {
		return nil, nil
	}
	return notify.ParseLedger(m.data)
}

func (m *memory) Save(_ context.Context, l *notify.Ledger) (err error) {
	m.data, err = l.Marshal()
	return err
}

type ignored struct{}

func (ignored) Notices(string, notify.Result, int) {}
func (ignored) Failed(string)                      {}

// A real mail server is unavailable for an hour. It then receives each mail once.
func TestAMailServerComesBack(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	w := &notify.World{Person: func(name string) notify.Person { return notify.Person{Name: name, Address: name + "@example.org"} }, KeepTag: func(string) string { return "" }, NotifiesOwners: func(string) bool { return false }}
	s := (&server{}).serve(t, true, false)
	smtp := s.config()
	there := smtp.Port
	smtp.Port = 1 // nothing listens there
	away := NewMail(smtp)
	smtp.Port = there
	store := &memory{}
	round := func(m *Mail) {
		n := notify.New(notify.Options{Config: &notify.Config{SMTP: *smtp, PerHour: 5}, World: func() (*notify.World, error) { return w, nil }, Mail: m, Store: store,
			Counters: ignored{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
		_, err := n.Round(t.Context())
		require.NoError(t, err)
	}
	round(away)
	for _, name := range []string{"ann", "bob"} {
		notice, act := metav1.NewTime(now), metav1.NewTime(now.Add(4*time.Hour))
		a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "idle-" + name, UID: "u-" + "1"}}
		a.Spec = v1.ActionSpec{Do: v1.OperationStopJob, Job: &v1.Job{Name: name + "/train"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "idle"}, Reason: "it idles"}
		a.Status = v1.ActionStatus{Phase: v1.PhaseNoticed, NoticeTime: &notice, ActTime: &act}
		w.Actions = append(w.Actions, a)
	}
	for range 4 {
		round(away)
		now = now.Add(15 * time.Minute)
	}
	require.Empty(t, s.received)
	round(NewMail(smtp))
	round(NewMail(smtp))
	require.ElementsMatch(t, []string{"ann@example.org", "bob@example.org"}, s.to)
	require.Contains(t, strings.Join(s.received, ""), "Reason: it idles")
}
