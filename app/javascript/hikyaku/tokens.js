// What the token says of itself: nothing here depends on its being true.
export function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}

// Tokens of the same rights use the same connection, whenever they were made.
export function rightsOf(token) {
  const {exp, iat, nbf, jti, ...rights} = claimsOf(token ?? "");
  return token === null ? null : JSON.stringify(rights);
}

export function authorization(grant) {
  return grant.token ? {Authorization: `Bearer ${grant.token}`} : {};
}
