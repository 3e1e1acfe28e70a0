{{/* rest-server.jobs: the namespace where jobs run. */}}
{{- define "rest-server.jobs" -}}pai-jobs{{- end -}}

{{/* rest-server.people: the namespace with the Secrets of people. */}}
{{- define "rest-server.people" -}}pai-people{{- end -}}

{{/* rest-server.onHosts: "true" if it listens on machines, otherwise empty. */}}
{{- define "rest-server.onHosts" -}}
{{- if eq .Values.expose "hostPort" }}true{{ end -}}
{{- end -}}

{{/* rest-server.credentials: the name of the Secret with values that no other service may read. */}}
{{- define "rest-server.credentials" -}}
{{- .Values.credentialsSecret | default (printf "%s-credentials" (include "pai.name" .)) -}}
{{- end -}}

{{/* rest-server.secrets: the secrets in the values: only plain helm has them there. */}}
{{- define "rest-server.secrets" -}}
{{- $all := dict -}}
{{- range $name, $issuer := .Values.signIn.oidc }}
{{- with $issuer.clientSecret }}{{ $_ := set $all (printf "signIn.oidc.%s.clientSecret" $name) . }}{{ end }}
{{- end }}
{{- range $name, $directory := .Values.signIn.ldap }}
{{- with $directory.bindPassword }}{{ $_ := set $all (printf "signIn.ldap.%s.bindPassword" $name) . }}{{ end }}
{{- end }}
{{- toJson $all -}}
{{- end -}}

{{/* rest-server.hasCredentials: "true" if such a Secret exists, otherwise empty. */}}
{{- define "rest-server.hasCredentials" -}}
{{- if or .Values.credentialsSecret (include "rest-server.secrets" . | fromJson) }}true{{ end -}}
{{- end -}}

{{/* rest-server.signIn: the ways to sign in, without their secrets. */}}
{{- define "rest-server.signIn" -}}
{{- $oidc := dict -}}
{{- range $name, $issuer := .Values.signIn.oidc }}{{ $_ := set $oidc $name (omit $issuer "clientSecret") }}{{ end }}
{{- $ldap := dict -}}
{{- range $name, $directory := .Values.signIn.ldap }}{{ $_ := set $ldap $name (omit $directory "bindPassword") }}{{ end }}
{{- merge (dict "oidc" $oidc "ldap" $ldap) (omit .Values.signIn "oidc" "ldap") | toJson -}}
{{- end -}}

{{/* rest-server.settings: the settings file of pai-server. It contains no secrets. */}}
{{- define "rest-server.settings" -}}
{{- $service := printf "%s.%s" (include "pai.name" .) .Release.Namespace -}}
{{- $domain := (.Values.global | default dict).dnsDomain | default "cluster.local" -}}
{{- $port := .Values.service.port -}}
{{- $proxyPort := .Values.service.proxyPort -}}
{{- if include "rest-server.onHosts" . }}{{ $port = .Values.service.hostPorts.https }}{{ $proxyPort = .Values.service.hostPorts.proxy }}{{ end -}}
{{- if eq .Values.expose "ingress" }}{{ $port = 443 }}{{ $proxyPort = ternary 443 0 (ne .Values.proxy.name "") }}{{ end -}}
{{- dict
  "names" .Values.names
  "addresses" .Values.addresses
  "serviceNames" (list (include "pai.name" .) $service (printf "%s.svc" $service) (printf "%s.svc.%s" $service $domain))
  "port" $port
  "trustedProxies" .Values.trustedProxies
  "tokens" .Values.tokens
  "limits" .Values.limits
  "signIn" (include "rest-server.signIn" . | fromJson)
  "acme" .Values.acme
  "door" .Values.door
  "proxy" (dict "name" .Values.proxy.name "port" $proxyPort)
  "alerts" .Values.alerts
  | toPrettyJson -}}
{{- end -}}

{{/* rest-server.check: values that don't go together. */}}
{{- define "rest-server.check" -}}
{{- if and (eq .Values.expose "ingress") (not .Values.names) -}}
{{- fail "names: an Ingress needs the names by which people reach it" -}}
{{- end -}}
{{- if has .Values.proxy.name .Values.names -}}
{{- fail "proxy.name: pages of other services need another name than the server's own names" -}}
{{- end -}}
{{- if and (eq .Values.expose "service") (eq (int .Values.service.port) (int .Values.service.proxyPort)) -}}
{{- fail "service.proxyPort: pages of other services need another port than service.port" -}}
{{- end -}}
{{- if .Values.acme.enabled -}}
{{- if not .Values.names -}}{{- fail "acme: names has no public name, such as gpu.example.org" -}}{{- end -}}
{{- if not .Values.acme.acceptTerms -}}{{- fail "acme.acceptTerms: the authority signs only if you agree to its terms of service" -}}{{- end -}}
{{- if .Values.tls.secretName -}}{{- fail "acme.enabled and tls.secretName: use one of them" -}}{{- end -}}
{{- if eq .Values.expose "ingress" -}}{{- fail "acme.enabled: behind an Ingress the authority doesn't reach the server; the Ingress has the certificate" -}}{{- end -}}
{{- end -}}
{{- end -}}
