package approver

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certv1 "k8s.io/api/certificates/v1"
)

type decision int

const (
	ignored decision = iota // the request isn't for this program
	pending                 // the machine isn't known yet
	approved
	denied
)

// verdict is a decision with its reason. The kubelet's log and "kubectl get csr" show the reason.
type verdict struct {
	decision decision
	node     string // "" if the request names no node
	message  string
}

const (
	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"
)

var subjectAlternativeName = asn1.ObjectIdentifier{2, 5, 29, 17}

// judge decides on a request. A machine may only get a server certificate for its own name and addresses. The function addresses returns the
// addresses of a node, or nil for an unknown node. judge calls it last.
func judge(csr *certv1.CertificateSigningRequest, addresses func(node string) ([]netip.Addr, error)) (verdict, error) {
	if csr.Spec.SignerName != certv1.KubeletServingSignerName {
		return verdict{}, nil
	}
	node, isNode := strings.CutPrefix(csr.Spec.Username, nodePrefix)
	v := verdict{decision: denied, node: node}
	if !isNode || node == "" || !slices.Contains(csr.Spec.Groups, nodesGroup) {
		v.node, v.message = "", fmt.Sprintf("only nodes may request it, and %q in the groups %q is not a node", csr.Spec.Username, csr.Spec.Groups)
		return v, nil
	}
	req, err := parse(csr.Spec.Request)
	if err == nil {
		err = errors.Join(checkSubject(req, csr.Spec.Username), checkUsages(csr.Spec.Usages), checkContent(req), checkNames(req, node))
	}
	if err != nil {
		v.message = strings.ReplaceAll(err.Error(), "\n", "; ")
		return v, nil
	}
	known, err := addresses(node)
	switch {
	case err != nil:
		return v, err
	case known == nil:
		v.decision, v.message = pending, "no machine of this name is known"
	default:
		v.decision, v.message = approved, "a machine of the layout, for its own name and addresses"
		if foreign := foreignAddresses(req, known); len(foreign) > 0 {
			v.decision = denied
			v.message = fmt.Sprintf("%s: not an address of %s, which has %s; if it is, correct hostip in layout.yaml and run paictl cluster up", strings.Join(foreign, ", "), node, join(known))
		}
	}
	return v, nil
}

// parse parses PEM text with exactly one request. It also checks the request's signature, which proves that the requester has the key.
func parse(data []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it is not one PEM block with a CERTIFICATE REQUEST")
	}
	req, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	if err := req.CheckSignature(); err != nil {
		return nil, fmt.Errorf("its signature is wrong: %w", err)
	}
	if key, isRSA := req.PublicKey.(*rsa.PublicKey); isRSA && key.N.BitLen() < 2048 {
		return nil, fmt.Errorf("an RSA key of %d bits is too short", key.N.BitLen())
	}
	return req, nil
}

// checkSubject returns an error unless the subject contains exactly the requester's name and the group of nodes.
func checkSubject(req *x509.CertificateRequest, username string) error {
	if req.Subject.CommonName != username {
		return fmt.Errorf("common name %q: only the requester's, %q, is allowed", req.Subject.CommonName, username)
	}
	if !slices.Equal(req.Subject.Organization, []string{nodesGroup}) {
		return fmt.Errorf("organization %q: it must be %s alone", req.Subject.Organization, nodesGroup)
	}
	if len(req.Subject.Names) != 2 {
		return fmt.Errorf("subject %q: only common name and organization are allowed", req.Subject)
	}
	return nil
}

func checkUsages(usages []certv1.KeyUsage) error {
	for _, u := range usages {
		switch u {
		case certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth:
		default:
			return fmt.Errorf("usage %q: only digital signature, key encipherment and server auth are allowed", u)
		}
	}
	if !slices.Contains(usages, certv1.UsageServerAuth) {
		return errors.New("usage server auth is missing")
	}
	return nil
}

// checkContent returns an error for content that a kubelet never requests: the rights of a CA, and alternative names of types that can't be checked.
func checkContent(req *x509.CertificateRequest) error {
	seen := false
	for _, e := range req.Extensions {
		if !e.Id.Equal(subjectAlternativeName) || seen {
			return fmt.Errorf("extension %s: only alternative names are allowed, once", e.Id)
		}
		seen = true
		// Check the raw names, because Go's parser ignores names of types that it doesn't support.
		var names []asn1.RawValue
		if rest, err := asn1.Unmarshal(e.Value, &names); err != nil || len(rest) > 0 {
			return errors.New("the alternative names can't be read")
		}
		for _, n := range names {
			const dns, ip = 2, 7
			if n.Class != asn1.ClassContextSpecific || n.Tag != dns && n.Tag != ip {
				return fmt.Errorf("alternative name of kind %d: only DNS names and IP addresses are allowed", n.Tag)
			}
		}
	}
	return nil
}

// checkNames returns an error for DNS names other than the node's name, email addresses, URIs, and a request without names.
func checkNames(req *x509.CertificateRequest, node string) error {
	if len(req.EmailAddresses)+len(req.URIs) > 0 {
		return errors.New("email addresses and URIs are not allowed")
	}
	if len(req.DNSNames)+len(req.IPAddresses) == 0 {
		return errors.New("it names neither a DNS name nor an address")
	}
	for _, name := range req.DNSNames {
		if name != node {
			return fmt.Errorf("DNS name %q: only %q is allowed", name, node)
		}
	}
	return nil
}

func foreignAddresses(req *x509.CertificateRequest, known []netip.Addr) []string {
	var out []string
	for _, ip := range req.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); !ok || !slices.Contains(known, a.Unmap()) {
			out = append(out, ip.String())
		}
	}
	return out
}

func join(addresses []netip.Addr) string {
	var out []string
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}
