package release

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// plain is an error with a one-line message. plain wraps the original error.
type plain struct {
	text string
	err  error
}

func (p plain) Error() string { return p.text }
func (p plain) Unwrap() error { return p.err }

// explain adds the operation and the name of the release to an error, and puts Helm's message on one line.
func explain(verb, name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s %s: %w", verb, name, flat(err))
}

func (c *connection) explain(verb, name string, err error) error {
	return explain(verb, name, c.cluster.Explain(err))
}

var (
	countOfErrors = regexp.MustCompile(`\d+ errors? occurred:\s*`)
	bullet        = regexp.MustCompile(`\s*\n\s*\* `)
	afterColon    = regexp.MustCompile(`:\s*; `)
	spaces        = regexp.MustCompile(`\s+`)
)

// flat returns an error with a one-line message. flat wraps err, so that a hint is kept.
func flat(err error) error {
	text := err.Error()
	if !strings.ContainsAny(text, "\n\t") {
		return err
	}
	text = countOfErrors.ReplaceAllString(text, "\n")
	parts := bullet.Split("\n"+strings.TrimSpace(text), -1)
	text = strings.Join(parts, "; ")
	text = strings.TrimLeft(spaces.ReplaceAllString(text, " "), "; ")
	return plain{strings.TrimSpace(afterColon.ReplaceAllString(text, ": ")), err}
}

// shown is the maximum number of rejected objects or fields in an error.
const shown = 3

// oneLine joins the errors of several objects into an error with a one-line message. The error has the remedy of the first error.
func oneLine(errs []error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) < 2 {
		return errors.Join(all...)
	}
	if err := errors.Join(all...); errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	var texts []string
	for _, err := range all[:min(len(all), shown)] {
		texts = append(texts, err.Error())
	}
	if more := len(all) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return hint.Wrap(plain{strings.Join(texts, "; "), errors.Join(all...)}, hint.Of(all[0]))
}

// refusal converts the error of a dry run to a one-line error with the object's name. refusal returns nil for errors that only result from the order
// of creation.
func (v survey) refusal(o object, err error) error {
	switch {
	case err == nil, v.tolerated(o, err):
		return nil
	case errors.Is(err, context.Canceled):
		return err
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return fmt.Errorf("check %s: %w", o, err)
	}
	return hint.Wrap(plain{fmt.Sprintf("%s is refused: %s", o, reasonOf(status)), err}, remedyOf(v.release, v.namespace, err))
}

func (v survey) tolerated(o object, err error) bool {
	if apierrors.IsNotFound(err) && o.namespace != "" {
		// In a plan, the namespace of jobs may be missing, because an earlier service creates it.
		return v.creates[o.namespace] || v.rehearsal && (o.namespace == v.namespace || o.namespace == kube.JobNamespace)
	}
	// A webhook with side effects can't be called in a dry run.
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// reasonOf returns the reason why the API rejected an object. reasonOf returns the list of invalid fields, if any.
func reasonOf(err *apierrors.StatusError) string {
	s := err.Status()
	if s.Details == nil || len(s.Details.Causes) == 0 || !apierrors.IsInvalid(err) {
		return strings.Join(strings.Fields(s.Message), " ")
	}
	var out []string
	for _, c := range s.Details.Causes[:min(len(s.Details.Causes), shown)] {
		out = append(out, strings.TrimPrefix(c.Field+": ", ": ")+strings.Join(strings.Fields(c.Message), " "))
	}
	return strings.Join(out, "; ")
}

func remedyOf(release, namespace string, err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "maximum") && apierrors.IsForbidden(err):
		return "request less in the service's section, or raise the limit: kubectl -n " + namespace + " get resourcequota,limitrange"
	case strings.Contains(text, "being terminated"):
		return "wait until the namespace is gone, then run it again"
	case strings.Contains(text, "admission webhook"), strings.Contains(text, "ValidatingAdmissionPolicy"):
		return "change the value in the service's section, or ask the owner of the policy"
	case strings.Contains(text, "field is immutable"), strings.Contains(text, "updates to statefulset spec"):
		return "stop the service first, then start it: paictl service stop -n " + release
	case apierrors.IsNotFound(err):
		return "make the namespace first: paictl config push, or kubectl create namespace"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "use a kubeconfig of an administrator of the cluster (--kubeconfig, --context)"
	}
	return "correct the service's section in services-configuration.yaml; see: paictl service values -n " + release
}

func noKind(u *unstructured.Unstructured, err error) error {
	i := idOf(u)
	return hint.Wrap(plain{fmt.Sprintf("%s: the cluster has no %s of %s", i, u.GetKind(), u.GetAPIVersion()), err},
		"install the service that defines it first, and name it in requires of the section; or disable it in the values")
}
