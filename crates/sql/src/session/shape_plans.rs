//! Hot path: at most 30 instructions per known statement, not counting the lookup.
//!
//! Finds or makes the plan of the statement whose shape was scanned last.

use std::sync::Arc;

use junctor_expression::ParametersBuilder;
use junctor_model::error::Result;

use crate::bind::message;
use crate::execute::{Engine, LockCallMode, StatementContext};
use crate::parse::lift::can_keep;
use crate::parse::session_value::SessionValue;
use crate::parse::{Expression, ParameterNumber, Parameterised, parse_with_parameters};
use crate::plan::{CachedShape, Plan, PlanKey, PlanVariants};
use crate::plan::{fill_from_shape, kinds_of_shape};

impl StatementContext<'_, '_> {
    /// The plan of a statement whose parameters are the lifted literals of its shape. `None` if no plan can
    /// be reused: the statement is then planned with its literals.
    ///
    /// # Errors
    /// The errors of parsing, binding and planning.
    #[inline(always)]
    pub(super) fn plan_of_shape(&mut self, text: &[u8]) -> Result<Option<Plan>> {
        self.engine.work.session_values.clear();
        let key = Engine::plan_key(&self.engine.shape, self.session);
        match self.engine.cache.get(&key, &self.engine.gateway.catalog().dictionary) {
            Some((CachedShape::Plan(plan), digest)) => {
                if self.note_known_digest(text, digest) {
                    self.note_plan_work(&plan);
                }
                Ok(Some(plan))
            }
            Some((CachedShape::Variants(kept), digest)) => {
                let is_new = self.note_known_digest(text, digest);
                let plan = self.plan_of_variant(text, &kept)?;
                if is_new && let Some(plan) = &plan {
                    self.note_plan_work(plan);
                }
                Ok(plan)
            }
            None => self.plan_shape(text),
        }
    }

    /// The plan of a statement whose shape keeps some literals.
    fn plan_of_variant(&mut self, text: &[u8], kept: &PlanVariants) -> Result<Option<Plan>> {
        if !kept.has_plans() || !can_keep(&kept.ordinals, &self.engine.shape) {
            return Ok(None);
        }
        let of_literals;
        let session_values = match kept.values_have_literals {
            false => &kept.session_values,
            true => match self.values_of_literals(text, kept) {
                Some(known) => {
                    of_literals = known;
                    &of_literals.session_values
                }
                None => {
                    kept.note_plan();
                    return self.plan_shape(text);
                }
            },
        };
        if self.evaluate_session_values(session_values).is_err() {
            return Ok(None);
        }
        let hash = self.make_variant(text, &kept.ordinals);
        let engine = &mut *self.engine;
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        if let Some((CachedShape::Plan(plan), _)) = engine.cache.get(&key, &engine.gateway.catalog().dictionary) {
            kept.note_use();
            return Ok(Some(plan));
        }
        kept.note_plan();
        self.plan_shape(text)
    }

    /// The session values of a statement whose session values contain kept literals; `None` if the cache does
    /// not know these literals.
    fn values_of_literals(&mut self, text: &[u8], kept: &PlanVariants) -> Option<Arc<PlanVariants>> {
        self.engine.work.session_kinds.clear();
        let hash = self.make_variant(text, &kept.ordinals);
        let engine = &mut *self.engine;
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        match engine.cache.get(&key, &engine.gateway.catalog().dictionary) {
            Some((CachedShape::Variants(known), _)) => Some(known),
            _ => None,
        }
    }

    /// Plans a statement that has no plan yet.
    #[cold]
    fn plan_shape(&mut self, text: &[u8]) -> Result<Option<Plan>> {
        self.note_digest(text);
        let (mut statement, kept, deprecations) =
            match parse_with_parameters(text, &self.engine.shape, self.session.variables.dialect()) {
                Ok(Parameterised::Statement { statement, kept, deprecations }) => (statement, kept, deprecations),
                Ok(Parameterised::LiteralsMatter) => {
                    self.cache_shape(CachedShape::Variants(Arc::default()));
                    return Ok(None);
                }
                Err(error) => return Err(message::of_parse_error(&error)),
            };
        let first = ParameterNumber(self.engine.shape.slot_count() as u32);
        let session_values = self.lift_session_values(&mut statement, first, self.session.database());
        kinds_of_shape(&self.engine.shape, &mut self.engine.work.kinds);
        self.evaluate_session_values(&session_values)?;
        let work = &mut self.engine.work;
        work.kinds.extend_from_slice(&work.session_kinds);
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Described);
        self.session.seed = self.turn.random.word();
        self.note_planning_values(text);
        let planned = self.plan(&statement, self.session.database());
        self.engine.work.planning_values.clear();
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Refused);
        let Some(planned) = planned? else { return Ok(None) };
        if planned.is_volatile {
            // The plan is valid for one execution only, so the statement is planned with its literals instead
            // of parameters. The reason is in the text, so this applies to all statements of the shape.
            self.cache_shape(CachedShape::Variants(Arc::default()));
            return Ok(None);
        }
        self.engine.counters.plans += 1;
        let plan = planned.plan.with_deprecations(deprecations);
        self.note_plan_work(&plan);
        if kept.is_empty() && session_values.is_empty() {
            self.cache_shape(CachedShape::Plan(plan.clone()));
            return Ok(Some(plan));
        }
        self.keep_parts(text, &kept, session_values);
        let hash = self.make_variant(text, &kept);
        let engine = &mut *self.engine;
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let dictionary = &engine.gateway.catalog().dictionary;
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        engine.cache.put(&key, (CachedShape::Plan(plan.clone()), self.session.digest), dictionary);
        Ok(Some(plan))
    }

    /// Notes the literals of the shape that was scanned last, by which the plan is chosen.
    fn note_planning_values(&mut self, text: &[u8]) {
        let Engine { shape, work, .. } = &mut *self.engine;
        let mut builder = ParametersBuilder::new();
        fill_from_shape(text, shape, 0, &mut work.decoded, &mut builder);
        if builder.append_to(&mut work.planning_values).is_err() {
            work.planning_values.clear();
        }
    }

    /// Stores the kept literals and session values of the shape that was scanned last.
    fn keep_parts(&mut self, text: &[u8], kept: &[ParameterNumber], session_values: Vec<SessionValue>) {
        let has_arguments = |value: &SessionValue| match &value.expression {
            Expression::Function(call) => !call.arguments.is_empty(),
            _ => false,
        };
        let values_have_literals = !kept.is_empty() && session_values.iter().any(has_arguments);
        if values_have_literals {
            let kinds = std::mem::take(&mut self.engine.work.session_kinds);
            let hash = self.make_variant(text, kept);
            let engine = &mut *self.engine;
            engine.work.session_kinds = kinds;
            let shape_key = Engine::plan_key(&engine.shape, self.session);
            let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
            let known = PlanVariants::new(&[], session_values);
            let known = (CachedShape::Variants(Arc::new(known)), self.session.digest);
            engine.cache.put(&key, known, &engine.gateway.catalog().dictionary);
            return self.keep_unless_known(PlanVariants::with_values_of_literals(kept));
        }
        self.keep_unless_known(PlanVariants::new(kept, session_values));
    }

    fn keep_unless_known(&mut self, kept: PlanVariants) {
        let engine = &mut *self.engine;
        let key = Engine::plan_key(&engine.shape, self.session);
        let dictionary = &engine.gateway.catalog().dictionary;
        // An existing entry stays, because it counts the plans made since the last hit.
        if engine.cache.get(&key, dictionary).is_none() {
            engine.cache.put(&key, (CachedShape::Variants(Arc::new(kept)), self.session.digest), dictionary);
        }
    }

    /// Writes the plan cache key for these kept literals and the types of the session values into the
    /// workspace. Returns the hash of the key.
    fn make_variant(&mut self, text: &[u8], kept: &[ParameterNumber]) -> [u64; 2] {
        let Engine { shape, work, .. } = &mut *self.engine;
        work.variant.clear();
        shape.append_with_kept(text, kept, &mut work.variant);
        for kind in &work.session_kinds {
            // The coercibility follows from the expression.
            let (length, decimals) = kind.exact.map_or((0, 0), |result| (result.length, result.decimals));
            let collation = kind.exact.map_or(0, |result| result.collation.number());
            work.variant.extend_from_slice(&[kind.kind as u8, decimals, kind.prefix as u8]);
            work.variant.extend_from_slice(&length.to_le_bytes());
            work.variant.extend_from_slice(&collation.to_le_bytes());
        }
        shape.hash_of(&work.variant)
    }

    /// Stores the plan or the kept literals of the shape that was scanned last in the plan cache.
    fn cache_shape(&mut self, known: CachedShape) {
        let key = Engine::plan_key(&self.engine.shape, self.session);
        let known = (known, self.session.digest);
        self.engine.cache.put(&key, known, &self.engine.gateway.catalog().dictionary);
    }
}
