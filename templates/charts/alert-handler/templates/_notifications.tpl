{{/* alert-handler.secrets: the secrets of the values by their dotted path, as JSON; for plain helm. */}}
{{- define "alert-handler.secrets" -}}
{{- $out := dict }}
{{- with .Values.notifications.smtp.password }}{{ $_ := set $out "notifications.smtp.password" . }}{{ end }}
{{- range $i, $hook := .Values.notifications.webhooks }}
{{- with $hook.secretUrl }}{{ $_ := set $out (printf "notifications.webhooks.%d.secretUrl" $i) . }}{{ end }}
{{- with $hook.signingSecret }}{{ $_ := set $out (printf "notifications.webhooks.%d.signingSecret" $i) . }}{{ end }}
{{- end }}
{{- toJson $out -}}
{{- end -}}

{{/* alert-handler.credentials: the name of the Secret with them; empty if there are none. */}}
{{- define "alert-handler.credentials" -}}
{{- if .Values.credentialsSecret }}{{ .Values.credentialsSecret }}
{{- else if include "alert-handler.secrets" . | fromJson }}{{ include "pai.name" . }}-credentials
{{- end -}}
{{- end -}}

{{/* alert-handler.notifications: notifications.json, without secrets. */}}
{{- define "alert-handler.notifications" -}}
{{- $hooks := list }}
{{- range .Values.notifications.webhooks }}{{ $hooks = append $hooks (omit . "secretUrl" "signingSecret") }}{{ end }}
{{- $out := merge (dict "smtp" (omit .Values.notifications.smtp "password") "webhooks" $hooks) (omit .Values.notifications "smtp" "webhooks") }}
{{- with (.Values.global).clusterId }}{{ $_ := set $out "cluster" . }}{{ end }}
{{- toJson $out -}}
{{- end -}}

{{/* alert-handler.offer: what the server tells people about notices, as JSON. */}}
{{- define "alert-handler.offer" -}}
{{- $n := .Values.notifications }}
{{- dict "mail" (ne $n.smtp.host "") "personalWebhooks" $n.personalWebhooks "required" $n.required | toJson -}}
{{- end -}}
