package notify

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Administrators get a notice about a machine that couldn't be returned to service within a day, although the return wasn't announced.
func TestAdministratorsLearnThatAnOperationExpired(t *testing.T) {
	s := newScene(t)
	s.config.Administrators = []string{"ops@example.org"}
	a := s.job(1, "ann")
	a.Spec.Do, a.Spec.Job, a.Spec.Machine = v1.OperationUncordon, nil, &v1.Machine{Name: "n1"}
	a.Status.NoticeTime, a.Status.ActTime = nil, nil
	s.end(a, v1.PhaseExpired, "n1 stays cordoned until its agent finds no fault: GPU 3: XID 79", false)
	s.replica().round()
	require.Equal(t, []string{"ops@example.org: uncordon of n1 expired"}, s.sent)
}
