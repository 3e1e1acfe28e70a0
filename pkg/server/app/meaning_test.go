package app_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/vc/change"
	"github.com/openpai/paictl/pkg/server/app"
)

func TestAStoredChangeIsNotReportedAsAFailureWithoutEffect(t *testing.T) {
	cause := apierrors.NewForbidden(corev1.Resource("configmaps"), "scheduler-configuration", errors.New("not for the account of the server"))
	e := app.Meaning(hint.Wrap(&change.PendingError{Revision: 4, Err: cause}, "run the command again"))
	assert.Equal(t, 500, e.Status)
	assert.Equal(t, "revision 4 of the configuration is stored, but the scheduler doesn't have it yet", e.Message)
	assert.Equal(t, "run the command again", e.Remedy)
}
