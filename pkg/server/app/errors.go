package app

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/oidc"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/scheduler/vc/change"
	"github.com/openpai/paictl/pkg/server/idempotency"
	"github.com/openpai/paictl/pkg/server/wire"
	published "github.com/openpai/paictl/pkg/services/facts"
)

// Error codes of OpenPAI that only this package uses.
const (
	codeNoJob       = "NoJobError"
	codeNoJobConfig = "NoJobConfigError"
	codeNoUser      = "NoUserError"
	codeNoGroup     = "NoGroupError"
	codeConflictJob = "ConflictJobError"
	codeConflict    = "ConflictUserError"
	codeProtocol    = "InvalidProtocolError"
	codePassword    = "IncorrectPasswordError"
	codeLast        = "RemoveAdminError"
	codeQuota       = "NoEnoughQuotaError"
	codeNoToken     = "NoTokenError"
	codeNoTemplate  = "NoTemplateError"
	codeTemplate    = "ConflictTemplateError"

	codeNotImplemented = "NotImplementedError"
	codeNoFacts        = "NoFactsError"
	codeNoMachine      = "NoMachineError"
	codeNoAction       = "NoActionError"
	codeNoHandler      = "NoAlertHandlerError"
	codeConflictAction = "ConflictActionError"
	codeNoSilence      = "NoSilenceError"
)

// retryAfter is the time after which a client should retry after a temporary error.
const retryAfter = 2 * time.Second

// Meaning converts an error to the response for the client. An error without a known conversion is internal, and its text is only logged.
func Meaning(err error) *wire.Error {
	e := meaning(err)
	if e.Remedy == "" && e.Status < http.StatusInternalServerError {
		e.Remedy = hint.Of(err)
	}
	return e
}

// told returns findings as text, one on each line, for clients that show only the message.
func told(findings strictyaml.Findings) string {
	var out []string
	for _, f := range findings.Errors() {
		out = append(out, f.String())
	}
	return strings.Join(out, "\n")
}

func meaning(err error) *wire.Error { //nolint:gocyclo // one case a line
	if e, ok := errors.AsType[*wire.Error](err); ok {
		out := *e
		return &out
	}
	made := func(status int, code string) *wire.Error {
		return &wire.Error{Status: status, Code: code, Message: err.Error()}
	}
	grant := (*grantError)(nil)
	findings := strictyaml.Findings{}
	invalid, notNow, pending := (*change.InvalidError)(nil), (*change.RefusedError)(nil), (*change.PendingError)(nil)
	refused, outside := (*job.RefusedError)(nil), (*metrics.RangeError)(nil)
	throttled, conflict, ended, limit := (*signin.ThrottledError)(nil), (*job.ConflictError)(nil), (*job.EndedError)(nil), (*job.LimitError)(nil)
	switch {
	case errors.Is(err, rules.ErrGuest):
		return &wire.Error{Status: http.StatusUnauthorized, Code: wire.CodeUnauthorized, Message: "Guest is not allowed to do this operation.", Remedy: "sign in: paictl login"}
	case errors.Is(err, ErrToken), errors.Is(err, token.ErrInvalid):
		return &wire.Error{Status: http.StatusUnauthorized, Code: wire.CodeUnauthorized, Message: "Your token is invalid.", Remedy: "sign in: paictl login"}
	case errors.Is(err, rules.ErrForbidden):
		return made(http.StatusForbidden, wire.CodeForbidden)
	case errors.Is(err, published.ErrNone):
		return made(http.StatusNotFound, codeNoFacts)
	case errors.Is(err, rules.ErrHidden):
		return &wire.Error{Status: http.StatusNotFound, Code: codeNoJob, Message: "It is not found."}
	case errors.As(err, &invalid) && errors.As(err, &findings):
		return &wire.Error{Status: http.StatusBadRequest, Code: wire.CodeParameters, Message: told(findings), Findings: findings}
	case errors.As(err, &invalid):
		return made(http.StatusBadRequest, wire.CodeParameters)
	case errors.As(err, &pending):
		return &wire.Error{Status: http.StatusInternalServerError, Code: wire.CodeUnknown, Message: pending.Message(), Remedy: hint.Of(err)}
	case errors.As(err, &notNow):
		return made(http.StatusConflict, ErrChanged.Code)
	case errors.As(err, &findings):
		return &wire.Error{Status: http.StatusBadRequest, Code: codeProtocol, Message: told(findings), Findings: findings}
	case errors.As(err, &throttled):
		return &wire.Error{Status: http.StatusTooManyRequests, Code: wire.CodeTooMany, Message: "too many sign-ins", RetryAfter: throttled.After}
	case errors.Is(err, signin.ErrBusy):
		return &wire.Error{Status: http.StatusTooManyRequests, Code: wire.CodeTooMany, Message: "too many sign-ins", RetryAfter: retryAfter}
	case errors.Is(err, signin.ErrWrong):
		return &wire.Error{Status: http.StatusBadRequest, Code: codePassword, Message: err.Error(), Remedy: "after many failures a right password is refused, too: then wait five minutes"}
	case errors.As(err, &grant):
		return made(http.StatusBadRequest, grant.code)
	case errors.Is(err, signin.ErrNotAdmitted), errors.Is(err, signin.ErrNoPassword), errors.Is(err, oidc.ErrRefused):
		return made(http.StatusForbidden, wire.CodeForbidden)
	case errors.Is(err, oidc.ErrMismatch):
		return &wire.Error{Status: http.StatusBadRequest, Code: wire.CodeParameters, Message: err.Error(), Remedy: "begin again, and finish in the same browser within ten minutes"}
	case errors.Is(err, onetime.ErrNone), errors.Is(err, onetime.ErrChanged):
		return &wire.Error{Status: http.StatusBadRequest, Code: wire.CodeParameters, Message: onetime.ErrNone.Error(), Remedy: "begin again"}
	case errors.Is(err, onetime.ErrMany):
		return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: err.Error(), Remedy: "try again in a few minutes", RetryAfter: time.Minute}
	case errors.Is(err, people.ErrCode):
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: err.Error(), Remedy: "an operator gets another with: paictl service start -n rest-server"}
	case errors.Is(err, idempotency.ErrOther):
		return &wire.Error{Status: http.StatusUnprocessableEntity, Code: wire.CodeKey, Message: err.Error(), Remedy: "use a new key for each submission, and the same key only to repeat a submission"}
	case errors.Is(err, token.ErrNone):
		return made(http.StatusNotFound, codeNoToken)
	case errors.Is(err, template.ErrNone):
		return made(http.StatusNotFound, codeNoTemplate)
	case errors.Is(err, template.ErrExists):
		return made(http.StatusConflict, codeTemplate)
	case errors.Is(err, template.ErrChanged):
		return made(http.StatusConflict, ErrChanged.Code)
	case errors.Is(err, template.ErrFull):
		return made(http.StatusForbidden, codeQuota)
	case errors.As(err, &conflict):
		return made(http.StatusConflict, codeConflictJob)
	case errors.As(err, &ended):
		return made(http.StatusConflict, codeConflictJob)
	case errors.As(err, &refused):
		return made(http.StatusBadRequest, wire.CodeParameters)
	case errors.As(err, &limit):
		return made(http.StatusForbidden, codeQuota)
	// This case must precede "not found". If the history doesn't respond, the existence of the job is unknown.
	case errors.Is(err, alerts.ErrNone):
		return &wire.Error{Status: http.StatusNotImplemented, Code: codeNotImplemented, Message: "which alerts fire isn't known: the server has no Alertmanager to ask",
			Remedy: "an operator names one in the section rest-server of services-configuration.yaml: alerts.url"}
	case errors.Is(err, metrics.ErrNone):
		return &wire.Error{Status: http.StatusNotImplemented, Code: codeNotImplemented, Message: metrics.ErrNone.Error(), Remedy: metrics.RemedyNone}
	case errors.Is(err, metrics.ErrAway):
		return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: metrics.ErrAway.Error(), Remedy: metrics.RemedyAway, RetryAfter: retryAfter}
	case errors.As(err, &outside):
		return made(http.StatusBadRequest, wire.CodeParameters)
	case errors.Is(err, people.ErrUnavailable), errors.Is(err, listing.ErrUnavailable), errors.Is(err, alerts.ErrAway), job.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "the server can't answer this now", Remedy: "try again in a moment", RetryAfter: retryAfter}
	case job.IsNotFound(err):
		return made(http.StatusNotFound, codeNoJob)
	case errors.Is(err, people.ErrNoUser):
		return made(http.StatusNotFound, codeNoUser)
	case errors.Is(err, people.ErrNoGroup):
		return made(http.StatusNotFound, codeNoGroup)
	case errors.Is(err, people.ErrExists):
		return made(http.StatusConflict, codeConflict)
	case errors.Is(err, people.ErrLastAdministrator):
		return made(http.StatusForbidden, codeLast)
	case errors.Is(err, people.ErrProtected):
		return made(http.StatusForbidden, wire.CodeForbidden)
	case errors.Is(err, people.ErrInvalid):
		return made(http.StatusBadRequest, wire.CodeParameters)
	}
	// The text of an error with a remedy is meant for the caller, unless the API server rejected a request of the server itself.
	if _, told := errors.AsType[*hint.Error](err); told && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return made(http.StatusBadRequest, wire.CodeParameters)
	}
	return &wire.Error{Status: http.StatusInternalServerError, Code: wire.CodeUnknown, Message: "the server couldn't do this; its log says why, under the id of the request"}
}
