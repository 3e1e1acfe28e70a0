package openpai

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TokenNamespace is the namespace in which OpenPAI stored the tokens that it had signed.
const TokenNamespace = "pai-user-token"

// readTokens counts the application tokens of each person. It keeps only the numbers, because tokens that OpenPAI signed aren't valid in this
// cluster.
func (s *Source) readTokens(ctx context.Context, from kubernetes.Interface) error {
	s.Tokens = map[string]int{}
	for next := ""; ; {
		list, err := from.CoreV1().Secrets(TokenNamespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the Secrets of %s: %w", TokenNamespace, err)
		}
		for i := range list.Items {
			name, err := hex.DecodeString(list.Items[i].Name)
			if err != nil {
				continue // a service account's token, of early Kubernetes
			}
			for _, token := range list.Items[i].Data {
				if forProgram(string(token)) {
					s.Tokens[string(name)]++
				}
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// forProgram reports whether a token was created for a program. Other tokens belong to sessions, which expire soon.
func forProgram(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Application bool `json:"application"`
	}
	return err == nil && json.Unmarshal(text, &claims) == nil && claims.Application
}
