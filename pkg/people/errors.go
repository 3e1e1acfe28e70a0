package people

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openpai/paictl/pkg/hint"
)

// Explain converts an error of the API server for other packages, in the same way as explain.
func Explain(err error) error { return explain(err) }

// explain converts an error of the API server. The result shows whether the request was invalid or the API server is unavailable.
func explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || hint.Of(err) != "" {
		return err
	}
	status := apierrors.APIStatus(nil)
	switch {
	case meta.IsNoMatchError(err) || isNoResource(err):
		return hint.Wrap(fmt.Errorf("%w: %w", ErrUnprepared, err),
			"add the first person, as an operator with a kubeconfig: paictl user add NAME --administrator")
	case apierrors.IsInvalid(err):
		return invalid("object", "%s", err.Error())
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return err
	case apierrors.IsConflict(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), !errors.As(err, &status):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// isNoResource reports whether an error means that the API server doesn't serve the kind of an object. It returns false if only the object is
// missing.
func isNoResource(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}
