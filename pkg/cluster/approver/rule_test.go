package approver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certv1 "k8s.io/api/certificates/v1"
)

type asked struct {
	spec certv1.CertificateSigningRequestSpec
	tmpl x509.CertificateRequest
	key  crypto.Signer
	// spoil changes the PEM text of the request.
	spoil func([]byte) []byte
}

// good returns a request of a node's kubelet for one address, with the fields that a real kubelet sets.
func good(t testing.TB, node, address string) *asked {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return &asked{
		spec: certv1.CertificateSigningRequestSpec{
			SignerName: certv1.KubeletServingSignerName, Username: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth},
		},
		tmpl: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
			DNSNames: []string{node}, IPAddresses: []net.IP{net.ParseIP(address)},
		},
		key: key,
	}
}

func (a *asked) request(t testing.TB) *certv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.tmpl, a.key)
	require.NoError(t, err)
	a.spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if a.spoil != nil {
		a.spec.Request = a.spoil(a.spec.Request)
	}
	return &certv1.CertificateSigningRequest{Spec: a.spec}
}

func known(node string) ([]netip.Addr, error) {
	return map[string][]netip.Addr{
		"w1": {netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")},
		"m1": {netip.MustParseAddr("10.0.0.1")},
	}[node], nil
}

func names(t testing.TB, list ...asn1.RawValue) pkix.Extension {
	t.Helper()
	value, err := asn1.Marshal(list)
	require.NoError(t, err)
	return pkix.Extension{Id: subjectAlternativeName, Value: value}
}

func TestARequestIsJudgedByMachineNamesAndAddresses(t *testing.T) {
	name := func(kind int, text string) asn1.RawValue {
		return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: kind, Bytes: []byte(text)}
	}
	for name, tt := range map[string]struct {
		edit    func(*asked)
		want    decision
		message string
	}{
		"what a kubelet asks for":         {func(*asked) {}, approved, "a machine of the layout"},
		"its address of IPv6":             {func(a *asked) { a.tmpl.IPAddresses = []net.IP{net.ParseIP("fd00::2")} }, approved, ""},
		"both of its addresses":           {func(a *asked) { a.tmpl.IPAddresses = append(a.tmpl.IPAddresses, net.ParseIP("fd00::2")) }, approved, ""},
		"no DNS name":                     {func(a *asked) { a.tmpl.DNSNames = nil }, approved, ""},
		"key encipherment, as RSA wants":  {func(a *asked) { a.spec.Usages = append(a.spec.Usages, certv1.UsageKeyEncipherment) }, approved, ""},
		"another signer":                  {func(a *asked) { a.spec.SignerName = certv1.KubeAPIServerClientSignerName }, ignored, ""},
		"the kubelets' client signer":     {func(a *asked) { a.spec.SignerName = certv1.KubeAPIServerClientKubeletSignerName }, ignored, ""},
		"a person":                        {func(a *asked) { a.spec.Username = "kubernetes-admin" }, denied, `only nodes may request it, and "kubernetes-admin"`},
		"a service account":               {func(a *asked) { a.spec.Username = "system:serviceaccount:kube-system:default" }, denied, "only nodes may request it"},
		"a node without a name":           {func(a *asked) { a.spec.Username = "system:node:" }, denied, "only nodes may request it"},
		"a node's name without its group": {func(a *asked) { a.spec.Groups = []string{"system:authenticated"} }, denied, "only nodes may request it"},
		"another node's common name":      {func(a *asked) { a.tmpl.Subject.CommonName = "system:node:m1" }, denied, `common name "system:node:m1": only the requester's`},
		"no common name":                  {func(a *asked) { a.tmpl.Subject.CommonName = "" }, denied, `common name ""`},
		"the masters' group":              {func(a *asked) { a.tmpl.Subject.Organization = []string{"system:masters"} }, denied, `organization ["system:masters"]`},
		"a second group":                  {func(a *asked) { a.tmpl.Subject.Organization = []string{"system:nodes", "system:masters"} }, denied, "it must be system:nodes alone"},
		"no group":                        {func(a *asked) { a.tmpl.Subject.Organization = nil }, denied, "it must be system:nodes alone"},
		"a unit besides":                  {func(a *asked) { a.tmpl.Subject.OrganizationalUnit = []string{"x"} }, denied, "only common name and organization"},
		"a second common name": {func(a *asked) {
			a.tmpl.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:node:m1"}, {Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:node:w1"}}
		}, denied, "only common name and organization"},
		"client auth":          {func(a *asked) { a.spec.Usages = append(a.spec.Usages, certv1.UsageClientAuth) }, denied, `usage "client auth"`},
		"cert sign":            {func(a *asked) { a.spec.Usages = append(a.spec.Usages, certv1.UsageCertSign) }, denied, `usage "cert sign"`},
		"any usage":            {func(a *asked) { a.spec.Usages = []certv1.KeyUsage{certv1.UsageAny} }, denied, `usage "any"`},
		"no server":            {func(a *asked) { a.spec.Usages = []certv1.KeyUsage{certv1.UsageDigitalSignature} }, denied, "usage server auth is missing"},
		"another node's name":  {func(a *asked) { a.tmpl.DNSNames = []string{"w1", "m1"} }, denied, `DNS name "m1": only "w1" is allowed`},
		"the API's name":       {func(a *asked) { a.tmpl.DNSNames = []string{"kubernetes.default.svc"} }, denied, `DNS name "kubernetes.default.svc"`},
		"a wildcard":           {func(a *asked) { a.tmpl.DNSNames = []string{"*"} }, denied, `DNS name "*"`},
		"its name in capitals": {func(a *asked) { a.tmpl.DNSNames = []string{"W1"} }, denied, `DNS name "W1"`},
		"a name below its own": {func(a *asked) { a.tmpl.DNSNames = []string{"a.w1"} }, denied, `DNS name "a.w1"`},
		"the API server's address": {func(a *asked) { a.tmpl.IPAddresses = append(a.tmpl.IPAddresses, net.ParseIP("10.0.0.1")) }, denied,
			"10.0.0.1: not an address of w1, which has 10.0.0.2, fd00::2; if it is, correct hostip in layout.yaml and run paictl cluster up"},
		"the machine itself": {func(a *asked) { a.tmpl.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")} }, denied, "127.0.0.1: not an address of w1"},
		"every address":      {func(a *asked) { a.tmpl.IPAddresses = []net.IP{net.ParseIP("0.0.0.0"), net.ParseIP("::")} }, denied, "0.0.0.0, ::: not an address"},
		"no name at all":     {func(a *asked) { a.tmpl.DNSNames, a.tmpl.IPAddresses = nil, nil }, denied, "neither a DNS name nor an address"},
		"an email address":   {func(a *asked) { a.tmpl.EmailAddresses = []string{"root@w1"} }, denied, "alternative name of kind 1"},
		"a URI":              {func(a *asked) { a.tmpl.URIs = []*url.URL{{Scheme: "spiffe", Host: "w1"}} }, denied, "alternative name of kind 6"},
		"a name of a directory": {func(a *asked) {
			a.tmpl.DNSNames, a.tmpl.IPAddresses = nil, nil
			a.tmpl.ExtraExtensions = []pkix.Extension{names(t, name(2, "w1"), name(4, "x"))}
		}, denied, "alternative name of kind 4"},
		"another kind of name": {func(a *asked) {
			a.tmpl.DNSNames, a.tmpl.IPAddresses = nil, nil
			a.tmpl.ExtraExtensions = []pkix.Extension{names(t, name(2, "w1"), name(0, "x"))}
		}, denied, "alternative name of kind 0"},
		"being an authority": {func(a *asked) {
			a.tmpl.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}, denied, "extension 2.5.29.19"},
		"usages in an extension": {func(a *asked) {
			a.tmpl.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: []byte{0x30, 0}}}
		}, denied, "extension 2.5.29.37"},
		"a short key": {func(a *asked) {
			key, err := rsa.GenerateKey(rand.Reader, 1024)
			require.NoError(t, err)
			a.key = key
		}, denied, "an RSA key of 1024 bits is too short"},
		"no PEM":      {func(a *asked) { a.spoil = func([]byte) []byte { return []byte("garbage") } }, denied, "not one PEM block"},
		"two of them": {func(a *asked) { a.spoil = func(b []byte) []byte { return append(b, b...) } }, denied, "not one PEM block"},
		"a certificate": {func(a *asked) {
			a.spoil = func([]byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}) }
		}, denied, "not one PEM block"},
		"no request inside": {func(a *asked) {
			a.spoil = func([]byte) []byte {
				return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
			}
		}, denied, "it can't be read"},
		"signed by another key": {func(a *asked) {
			a.spoil = func(b []byte) []byte {
				block, _ := pem.Decode(b)
				block.Bytes[len(block.Bytes)-1] ^= 1
				return pem.EncodeToMemory(block)
			}
		}, denied, "its signature is wrong"},
		"a machine that no one knows": {func(a *asked) {
			a.spec.Username, a.tmpl.Subject.CommonName, a.tmpl.DNSNames = "system:node:w9", "system:node:w9", []string{"w9"}
		}, pending, ""},
		"an unknown machine with another's name": {func(a *asked) {
			a.spec.Username, a.tmpl.Subject.CommonName = "system:node:w9", "system:node:w9"
		}, denied, `DNS name "w1"`},
	} {
		t.Run(name, func(t *testing.T) {
			a := good(t, "w1", "10.0.0.2")
			tt.edit(a)
			v, err := judge(a.request(t), known)
			require.NoError(t, err)
			assert.Equal(t, tt.want, v.decision, v.message)
			assert.Contains(t, v.message, tt.message)
		})
	}
}

func TestNothingIsDecidedWhileTheMachinesCantBeRead(t *testing.T) {
	_, err := judge(good(t, "w1", "10.0.0.2").request(t), func(string) ([]netip.Addr, error) { return nil, errors.New("no answer") })
	require.EqualError(t, err, "no answer")
}
